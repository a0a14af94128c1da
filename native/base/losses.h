// What was not measured, counted per kind; nothing is ever dropped in silence.
//
// count() may be called from any thread and from signal handlers: it neither locks nor allocates.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/ids.h"

namespace leadline {

class LossCounters {
 public:
  static constexpr std::size_t kDetailBytes = 512;

  // `detail` is one sentence; the first one given for a kind is kept, cut at kDetailBytes.
  void count(LossKind kind, std::uint64_t times = 1, std::string_view detail = {}) noexcept;

  std::uint64_t total(LossKind kind) const noexcept;
  std::string detail(LossKind kind) const;

  // For a fork child, and for a new session: no other thread may count meanwhile.
  void clear() noexcept;

 private:
  enum : std::uint8_t { kNoDetail, kBeingWritten, kHasDetail };
  struct Counter {
    std::atomic<std::uint64_t> total{0};
    std::atomic<std::uint8_t> detail_state{kNoDetail};
    std::uint16_t detail_size = 0;
    std::array<char, kDetailBytes> detail{};
  };
  std::array<Counter, kLossKindCount> counters_{};
};

// The counters of this process.
LossCounters& losses() noexcept;

}  // namespace leadline
