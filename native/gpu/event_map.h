// Events of streams: which call recorded each last and on which stream, so that a wait can name what it waits for.
//
// Direct-mapped by handle: no lock, no allocation. A collision forgets the older record; the wait then names nothing.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "base/hash.h"

namespace leadline::gpu {

class EventMap {
 public:
  struct Recorded {
    std::uint32_t correlation = 0;
    std::int64_t stream = -1;
  };

  // Of two threads that write one place at once the first is kept: a collision forgets, it never mixes.
  void record(const void* event, std::uint32_t correlation, std::int64_t stream) noexcept {
    Slot& slot = slots_[index(event)];
    std::uint32_t version = slot.version.load(std::memory_order_relaxed);
    if ((version & 1) != 0 || !slot.version.compare_exchange_strong(version, version + 1, std::memory_order_acquire)) {
      return;
    }
    slot.event.store(event, std::memory_order_release);
    slot.correlation.store(correlation, std::memory_order_release);
    slot.stream.store(stream, std::memory_order_release);
    slot.version.store(version + 2, std::memory_order_release);
  }

  Recorded find(const void* event) const noexcept {
    const Slot& slot = slots_[index(event)];
    const std::uint32_t version = slot.version.load(std::memory_order_acquire);
    if (slot.event.load(std::memory_order_acquire) != event) return {};
    const Recorded recorded{slot.correlation.load(std::memory_order_acquire),
                            slot.stream.load(std::memory_order_acquire)};
    const bool whole = (version & 1) == 0 && slot.version.load(std::memory_order_relaxed) == version;
    return whole ? recorded : Recorded{};
  }

 private:
  static constexpr std::size_t kSlots = 1u << 13;
  struct Slot {
    std::atomic<std::uint32_t> version{0};  // odd while somebody writes
    std::atomic<const void*> event{nullptr};
    std::atomic<std::uint32_t> correlation{0};
    std::atomic<std::int64_t> stream{-1};
  };
  static std::size_t index(const void* event) noexcept {
    return hash_mix(reinterpret_cast<std::uintptr_t>(event), 0) & (kSlots - 1);
  }
  std::array<Slot, kSlots> slots_{};
};

}  // namespace leadline::gpu
