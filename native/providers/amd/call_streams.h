// Streams of the last calls, and the memory that they copied, by the call's number: for records that do not say theirs.
// Written at every call: no lock, no allocation.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "providers/amd/stream_numbers.h"

namespace leadline::amd {

class CallStreams {
 public:
  struct Call {
    std::uint32_t stream = StreamNumbers::kUnknown;
    std::uint32_t memory = 0;  // see Correlation::copy_of
  };

  void put(std::uint32_t call, std::uint32_t stream, std::uint32_t memory) noexcept {
    slots_[call % kSlots].store(std::uint64_t{call} << 32 | memory << kStreamBits | stream, std::memory_order_relaxed);
  }
  // What is not known where the call is not among the last.
  Call of(std::uint32_t call) const noexcept {
    const std::uint64_t slot = slots_[call % kSlots].load(std::memory_order_relaxed);
    if (slot >> 32 != call) return {};
    const auto told = static_cast<std::uint32_t>(slot);
    return {told & StreamNumbers::kUnknown, told >> kStreamBits};
  }

 private:
  static constexpr std::size_t kSlots = 1u << 16;
  static constexpr std::uint32_t kStreamBits = 12;
  static_assert(StreamNumbers::kUnknown == (1u << kStreamBits) - 1);
  std::array<std::atomic<std::uint64_t>, kSlots> slots_{};
};

}  // namespace leadline::amd
