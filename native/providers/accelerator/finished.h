// Ended work on its way from any thread, also the library's own, to the thread that folds it: a bounded ring without a
// lock or memory of its own. Who finds it full drops the work and says so.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "providers/accelerator/in_flight.h"

namespace leadline::accelerator {

struct Finished {
  bool has_launch = true;
  Request request;
  Ran ran;
};

// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): each side writes to a cache line of its own
class FinishedRing {
 public:
  static constexpr std::size_t kSlots = 1u << 14;

  FinishedRing() : slots_(std::make_unique<Slot[]>(kSlots)) {
    for (std::size_t i = 0; i < kSlots; ++i) slots_[i].turn.store(i, std::memory_order_relaxed);
  }

  // Any thread. False: no room. `*many`: it is time to drain.
  bool push(const Finished& finished, bool* many) noexcept {
    std::size_t at = head_.load(std::memory_order_relaxed);
    while (true) {
      Slot& slot = slots_[at % kSlots];
      const std::size_t turn = slot.turn.load(std::memory_order_acquire);
      if (turn == at) {
        if (!head_.compare_exchange_weak(at, at + 1, std::memory_order_relaxed)) continue;
        slot.finished = finished;
        slot.turn.store(at + 1, std::memory_order_release);
        *many = at % (kSlots / 8) == 0;
        return true;
      }
      if (turn < at) return false;
      at = head_.load(std::memory_order_relaxed);
    }
  }

  // One thread. Calls f(finished) for each; returns how many.
  template <class F>
  std::size_t drain(F&& f) {
    std::size_t count = 0;
    for (;; ++count) {
      Slot& slot = slots_[tail_ % kSlots];
      if (slot.turn.load(std::memory_order_acquire) != tail_ + 1) return count;
      f(slot.finished);
      slot.turn.store(tail_ + kSlots, std::memory_order_release);
      ++tail_;
    }
  }

 private:
  struct Slot {
    std::atomic<std::size_t> turn{0};
    Finished finished;
  };
  std::unique_ptr<Slot[]> slots_;
  alignas(64) std::atomic<std::size_t> head_{0};
  alignas(64) std::size_t tail_ = 0;
};

}  // namespace leadline::accelerator
