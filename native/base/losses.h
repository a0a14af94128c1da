// What was not measured, counted per kind; nothing is ever dropped in silence.
//
// count() may be called from any thread and from signal handlers: it neither locks nor allocates. Of each kind the
// first few distinct sentences are kept, each with its own count; what comes with another one is counted together.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"

namespace leadline {

class LossCounters {
 public:
  static constexpr std::size_t kDetailBytes = 512;
  static constexpr std::size_t kMostSentences = 8;  // of a kind
  static constexpr std::string_view kOthers = "of yet other causes, whose sentences were not kept";

  struct Told {
    std::string sentence;  // empty: counted without one
    std::uint64_t count = 0;
  };

  // `detail` is one sentence, cut at kDetailBytes.
  void count(LossKind kind, std::uint64_t times = 1, std::string_view detail = {}) noexcept;

  std::uint64_t total(LossKind kind) const noexcept;
  // The first sentence of the kind.
  std::string detail(LossKind kind) const;
  // What the total consists of: each sentence in the order of their first counts, what had none, and the others.
  std::vector<Told> told(LossKind kind) const;

  // For a fork child, and for a new session: no other thread may count meanwhile.
  void clear() noexcept;

 private:
  struct Sentence {
    std::atomic<std::uint64_t> key{0};  // a hash of the text, set before it; 0: nobody's
    std::atomic<std::uint64_t> count{0};
    std::atomic<std::uint16_t> size{0};  // set behind the text
    std::array<char, kDetailBytes> text{};

    std::string read() const;
  };
  struct Counter {
    std::atomic<std::uint64_t> without{0};
    std::atomic<std::uint64_t> others{0};
    std::array<Sentence, kMostSentences> sentences{};
  };
  std::array<Counter, kLossKindCount> counters_{};
};

// The counters of this process.
LossCounters& losses() noexcept;

}  // namespace leadline
