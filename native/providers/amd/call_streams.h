// Streams of the last calls, by the call's number: for records that do not say theirs. Written at every call: no lock,
// no allocation.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "providers/amd/stream_numbers.h"

namespace leadline::amd {

class CallStreams {
 public:
  void put(std::uint32_t call, std::uint32_t stream) noexcept {
    slots_[call % kSlots].store(std::uint64_t{call} << 32 | stream, std::memory_order_relaxed);
  }
  // StreamNumbers::kUnknown where the call is not among the last.
  std::uint32_t of(std::uint32_t call) const noexcept {
    const std::uint64_t slot = slots_[call % kSlots].load(std::memory_order_relaxed);
    return slot >> 32 == call ? static_cast<std::uint32_t>(slot) : StreamNumbers::kUnknown;
  }

 private:
  static constexpr std::size_t kSlots = 1u << 16;
  std::array<std::atomic<std::uint64_t>, kSlots> slots_{};
};

}  // namespace leadline::amd
