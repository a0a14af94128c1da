// Small numbers for the program's streams: the SDK's own where it tells of them (since 1.0), else by first use. 0 is
// the default stream. Looked up at every launch: no lock, no allocation.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "base/hash.h"

namespace leadline::amd {

class StreamNumbers {
 public:
  // Where there are more streams than places.
  static constexpr std::uint32_t kUnknown = (1u << 12) - 1;

  void set(std::uint64_t handle, std::uint64_t number) noexcept {
    if (Slot* slot = place(handle)) {
      slot->number.store(number < kUnknown ? static_cast<std::uint32_t>(number) : kUnknown, std::memory_order_release);
    }
  }

  std::uint32_t of(std::uint64_t handle) noexcept {
    constexpr std::uint64_t kLegacy = 1;  // hipStreamLegacy: another name of the default stream
    if (handle <= kLegacy) return 0;
    Slot* slot = place(handle);
    if (!slot) return kUnknown;
    std::uint32_t number = slot->number.load(std::memory_order_acquire);
    if (number != kNone) return number;
    const std::uint32_t next = next_.fetch_add(1, std::memory_order_relaxed);
    const std::uint32_t mine = next < kUnknown ? next : kUnknown;
    return slot->number.compare_exchange_strong(number, mine, std::memory_order_acq_rel) ? mine : number;
  }

 private:
  static constexpr std::uint32_t kNone = ~0u;
  static constexpr std::size_t kSlots = 1u << 12;
  static constexpr std::size_t kProbes = 64;
  struct Slot {
    std::atomic<std::uint64_t> handle{0};
    std::atomic<std::uint32_t> number{kNone};
  };

  Slot* place(std::uint64_t handle) noexcept {
    const std::size_t first = hash_mix(handle, 0);
    for (std::size_t i = 0; i < kProbes; ++i) {
      Slot& slot = slots_[(first + i) & (kSlots - 1)];
      std::uint64_t there = slot.handle.load(std::memory_order_acquire);
      if (there == handle) return &slot;
      if (there == 0 && slot.handle.compare_exchange_strong(there, handle, std::memory_order_acq_rel)) return &slot;
      if (there == handle) return &slot;
    }
    return nullptr;
  }

  std::array<Slot, kSlots> slots_{};
  std::atomic<std::uint32_t> next_{1};
};

}  // namespace leadline::amd
