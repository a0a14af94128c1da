// Which launches are measured: the options of `leadline run` (python/leadline/tools/ranges.py says the same in Python).
#pragma once

#include <regex.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

namespace leadline::sanitizer {

struct Wanted {
  std::int64_t first = 0;
  std::int64_t end = -1;  // -1: no end
  std::int64_t every = 1;
  std::string kernel;  // regular expressions, empty for all
  std::string layer;
  std::string phase;
};

// A regular expression as the C library understands it, which with \d is what people write for names.
class Pattern {
 public:
  // *error: one sentence where it cannot be read.
  Pattern(const std::string& text, std::string* error);
  ~Pattern();
  Pattern(const Pattern&) = delete;
  Pattern& operator=(const Pattern&) = delete;
  // True for every text where the pattern is empty. Safe on every thread.
  bool found_in(const char* text) const noexcept;

 private:
  regex_t compiled_{};
  bool given_ = false;
};

class Selection {
 public:
  // *error: why a pattern cannot be read, else empty.
  Selection(const Wanted& wanted, std::string* error);

  // Of a kernel's name, when it is met first.
  bool kernel(const std::string& name) const noexcept { return kernel_.found_in(name.c_str()); }
  // Of one launch whose kernel is chosen. A place is looked at once.
  bool launch(std::int64_t number, std::uint64_t place) noexcept;

 private:
  bool place(std::uint64_t place) noexcept;
  bool look_at(std::uint64_t place) const;

  const Wanted wanted_;
  const Pattern kernel_;
  const Pattern layer_;
  std::atomic<std::uint64_t> matched_{0};
  std::mutex mutex_;  // places_; nothing of a vendor is called under it
  std::unordered_map<std::uint64_t, bool> places_;
};

}  // namespace leadline::sanitizer
