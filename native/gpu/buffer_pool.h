// Activity buffers: a bounded number, made when first needed, reused for ever; and the queue of full ones.
//
// take() and submit() run inside the vendor's library on any thread: they neither wait nor throw. One thread drains.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace leadline::gpu {

struct FullBuffer {
  std::uint8_t* data = nullptr;
  std::size_t valid_bytes = 0;
  void* context = nullptr;
  std::uint32_t stream = 0;
};

class BufferPool {
 public:
  static constexpr std::size_t kBytes = 1u << 20;
  static constexpr std::uint32_t kMost = 96;

  BufferPool() = default;
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;
  ~BufferPool() {
    for (auto& slot : slots_) std::free(slot.data.load(std::memory_order_relaxed));
  }

  // An empty buffer, or nullptr when all are out.
  std::uint8_t* take() noexcept {
    for (Slot& slot : slots_) {
      std::uint32_t free = kFree;
      if (!slot.state.compare_exchange_strong(free, kOut, std::memory_order_acq_rel)) continue;
      std::uint8_t* data = slot.data.load(std::memory_order_relaxed);
      if (!data) {
        data = static_cast<std::uint8_t*>(std::aligned_alloc(64, kBytes));
        slot.data.store(data, std::memory_order_relaxed);
      }
      if (!data) slot.state.store(kFree, std::memory_order_release);
      return data;
    }
    return nullptr;
  }

  // A buffer that came back; drained in the order of submit(). False when it is none of ours.
  bool submit(const FullBuffer& full) noexcept {
    Slot* slot = find(full.data);
    if (!slot) return false;
    slot->full = full;
    slot->order.store(next_order_.fetch_add(1, std::memory_order_relaxed), std::memory_order_relaxed);
    slot->state.store(kFull, std::memory_order_release);
    return true;
  }

  // Draining thread: handles every full buffer, oldest first, and makes it empty again, also where `handle` throws:
  // what it has taken must not come twice. Returns how many.
  template <class Handle>
  std::size_t drain(Handle&& handle) {
    struct Emptied {
      Slot* slot;
      ~Emptied() { slot->state.store(kFree, std::memory_order_release); }
    };
    std::size_t drained = 0;
    while (Slot* slot = oldest_full()) {
      const Emptied emptied{slot};
      handle(slot->full);
      ++drained;
    }
    return drained;
  }

  std::size_t held_bytes() const noexcept {
    std::size_t bytes = 0;
    for (const Slot& slot : slots_) bytes += slot.data.load(std::memory_order_relaxed) ? kBytes : 0;
    return bytes;
  }
  std::size_t out() const noexcept { return count(kOut); }
  std::size_t full() const noexcept { return count(kFull); }

 private:
  enum : std::uint32_t { kFree, kOut, kFull };
  struct Slot {
    std::atomic<std::uint32_t> state{kFree};
    std::atomic<std::uint64_t> order{0};
    std::atomic<std::uint8_t*> data{nullptr};
    FullBuffer full;
  };

  Slot* find(const std::uint8_t* data) noexcept {
    for (Slot& slot : slots_) {
      if (data && slot.data.load(std::memory_order_relaxed) == data) return &slot;
    }
    return nullptr;
  }
  Slot* oldest_full() noexcept {
    Slot* oldest = nullptr;
    for (Slot& slot : slots_) {
      if (slot.state.load(std::memory_order_acquire) != kFull) continue;
      if (!oldest || slot.order.load(std::memory_order_relaxed) < oldest->order.load(std::memory_order_relaxed))
        oldest = &slot;
    }
    return oldest;
  }
  std::size_t count(std::uint32_t state) const noexcept {
    std::size_t found = 0;
    for (const Slot& slot : slots_) found += slot.state.load(std::memory_order_relaxed) == state ? 1 : 0;
    return found;
  }

  std::array<Slot, kMost> slots_;
  std::atomic<std::uint64_t> next_order_{0};
};

}  // namespace leadline::gpu
