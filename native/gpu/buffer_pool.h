// Activity buffers: a bounded number, reused for ever; and the queue of full ones.
//
// A vendor's library may ask for one for each thread of the program, inside a launch. take() and submit() run there, on
// any thread: they neither wait nor throw, and as a rule find a buffer that the thread that folds has made, and filled
// with zeros, before. That thread drains.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace leadline::gpu {

struct FullBuffer {
  std::uint8_t* data = nullptr;
  std::size_t valid_bytes = 0;
  void* context = nullptr;
  std::uint32_t stream = 0;
};

class BufferPool {
 public:
  // A launch that asks for a buffer waits for it, so there should be few; one that is half empty at a flush, or waits
  // for a long kernel, is memory held for nothing, so they should be small. A kernel's record has 216 bytes.
  static constexpr std::size_t kBytes = 1u << 18;
  // Where very many threads launch.
  static constexpr std::size_t kSmallBytes = 1u << 15;
  static constexpr std::uint32_t kLarge = 128;
  static constexpr std::uint32_t kMost = 2048;
  static constexpr std::uint32_t kReady = 4;  // made before they are asked for

  struct Buffer {
    std::uint8_t* data = nullptr;
    std::size_t bytes = 0;
  };

  BufferPool() = default;
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;
  ~BufferPool() {
    for (auto& slot : slots_) std::free(slot.data.load(std::memory_order_relaxed));
  }

  // An empty buffer, all zeros; without data when all are out.
  Buffer take() noexcept {
    for (std::uint32_t at = 0; at < kMost; ++at) {
      Slot& slot = slots_[at];
      std::uint32_t free = kFree;
      if (!slot.state.compare_exchange_strong(free, kOut, std::memory_order_acq_rel)) continue;
      if (at >= used_.load(std::memory_order_relaxed)) raise_used(at + 1);
      if (std::uint8_t* const data = make(at)) return {data, bytes_of(at)};
      slot.state.store(kFree, std::memory_order_release);
      return {};
    }
    return {};
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
      std::size_t bytes;
      ~Emptied() {
        std::memset(slot->data.load(std::memory_order_relaxed), 0, bytes);
        slot->state.store(kFree, std::memory_order_release);
      }
    };
    std::size_t drained = 0;
    while (Slot* slot = oldest_full()) {
      const Emptied emptied{slot, bytes_of(static_cast<std::uint32_t>(slot - slots_.data()))};
      handle(slot->full);
      ++drained;
    }
    return drained;
  }
  // The same thread: makes the first few that are free.
  void prepare() noexcept {
    std::uint32_t ready = 0;
    for (std::uint32_t at = 0; at < kLarge && ready < kReady; ++at) {
      std::uint32_t free = kFree;
      if (!slots_[at].state.compare_exchange_strong(free, kMaking, std::memory_order_acq_rel)) continue;
      ++ready;
      const bool is_new = slots_[at].data.load(std::memory_order_relaxed) == nullptr;
      if (std::uint8_t* const data = make(at); data != nullptr && is_new)
        std::memset(data, 0, bytes_of(at));  // touched
      raise_used(at + 1);
      slots_[at].state.store(kFree, std::memory_order_release);
    }
  }

  std::size_t held_bytes() const noexcept {
    std::size_t bytes = 0;
    for (std::uint32_t at = 0; at < used_.load(std::memory_order_relaxed); ++at)
      bytes += slots_[at].data.load(std::memory_order_relaxed) ? bytes_of(at) : 0;
    return bytes;
  }
  std::size_t out() const noexcept { return count(kOut); }
  std::size_t full() const noexcept { return count(kFull); }

 private:
  enum : std::uint32_t { kFree, kMaking, kOut, kFull };
  struct Slot {
    std::atomic<std::uint32_t> state{kFree};
    std::atomic<std::uint64_t> order{0};
    std::atomic<std::uint8_t*> data{nullptr};
    FullBuffer full;
  };
  static constexpr std::size_t bytes_of(std::uint32_t at) noexcept { return at < kLarge ? kBytes : kSmallBytes; }

  std::uint8_t* make(std::uint32_t at) noexcept {
    std::uint8_t* data = slots_[at].data.load(std::memory_order_relaxed);
    if (data != nullptr) return data;
    data = static_cast<std::uint8_t*>(std::calloc(1, bytes_of(at)));
    slots_[at].data.store(data, std::memory_order_relaxed);
    return data;
  }
  void raise_used(std::uint32_t to) noexcept {
    std::uint32_t used = used_.load(std::memory_order_relaxed);
    while (used < to && !used_.compare_exchange_weak(used, to, std::memory_order_relaxed)) {
    }
  }
  Slot* find(const std::uint8_t* data) noexcept {
    for (Slot& slot : slots_) {
      if (data && slot.data.load(std::memory_order_relaxed) == data) return &slot;
    }
    return nullptr;
  }
  Slot* oldest_full() noexcept {
    Slot* oldest = nullptr;
    for (std::uint32_t at = 0; at < used_.load(std::memory_order_relaxed); ++at) {
      Slot& slot = slots_[at];
      if (slot.state.load(std::memory_order_acquire) != kFull) continue;
      if (!oldest || slot.order.load(std::memory_order_relaxed) < oldest->order.load(std::memory_order_relaxed))
        oldest = &slot;
    }
    return oldest;
  }
  std::size_t count(std::uint32_t state) const noexcept {
    return static_cast<std::size_t>(std::count_if(slots_.begin(), slots_.end(), [state](const Slot& slot) {
      return slot.state.load(std::memory_order_relaxed) == state;
    }));
  }

  std::array<Slot, kMost> slots_;
  std::atomic<std::uint32_t> used_{0};  // slots that were ever taken
  std::atomic<std::uint64_t> next_order_{0};
};

}  // namespace leadline::gpu
