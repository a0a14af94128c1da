// What a program has named for its NVTX ranges: domains, categories, strings; and which payloads a range has had.
//
// Programs hold pointers into this for as long as they live, so nothing is ever freed. Adding a name takes a lock,
// which a fork waits for (so that its child finds nothing half done); reading, which every range does, takes none and
// allocates nothing.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace leadline::nvidia {

class NvtxDomain {
 public:
  explicit NvtxDomain(std::string name) : of_xla(name == "TSL"), name_(std::move(name)) {}

  const std::string& name() const noexcept { return name_; }
  // Empty where it has none.
  std::string_view category(std::uint32_t id) const noexcept;

  // XLA's, whose titles of programs and operations are kept where the rest is skipped, while `titles`.
  const bool of_xla;
  std::atomic<bool> titles{true};
  std::atomic<bool> skipped{false};
  std::atomic<std::uint64_t> ranges{0};
  std::atomic<std::uint64_t> titled{0};

 private:
  friend class NvtxNames;
  struct Category {
    std::uint32_t id;
    std::string name;
    const Category* next;
  };
  const std::string name_;
  std::atomic<const Category*> categories_{nullptr};
};

class NvtxNames {
 public:
  static NvtxNames& instance();  // never destroyed

  // These three may run out of memory, which they throw. nullptr for a domain that is left alone.
  NvtxDomain* create_domain(std::string name);
  const char* register_string(std::string text);
  void name_category(NvtxDomain& domain, std::uint32_t id, std::string name);

  // Domains left out (compared without case), those to come included; and those that are to find no tool, so that their
  // library does what it does without one.
  void skip(const std::vector<std::string>& names, const std::vector<std::string>& left_alone);
  NvtxDomain& global() noexcept { return global_; }
  template <class See>
  void for_each_domain(See&& see) {
    const std::lock_guard lock(mutex_);
    for (const NvtxDomain* domain : domains_) see(*domain);
  }

  // False while a range of this name has had few payloads, so that each may have a place of its own. Lock-free.
  bool payload_varies(const NvtxDomain& domain, std::string_view range, std::uint64_t payload) noexcept;

 private:
  NvtxNames();
  static bool is_among(const std::vector<std::string>& names, const std::string& name);

  // Open addressing; a name that finds no room counts as one that varies.
  static constexpr std::size_t kRanges = 1024;
  static constexpr std::uint32_t kMostPayloads = 32;
  struct Payloads {
    std::atomic<std::uint64_t> range{0};  // hash of domain and name
    std::atomic<std::uint32_t> taken{0};
    std::atomic<std::uint32_t> written{0};  // bit per value
    std::array<std::atomic<std::uint64_t>, kMostPayloads> values{};
  };

  std::mutex mutex_;
  NvtxDomain global_{""};
  std::vector<NvtxDomain*> domains_;
  std::vector<std::string> skipped_;
  std::vector<std::string> left_alone_;
  std::set<std::string, std::less<>> strings_;  // its elements stay where they are
  std::array<Payloads, kRanges> payloads_{};
};

}  // namespace leadline::nvidia
