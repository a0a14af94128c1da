// Whether a thread is inside an event; what unsubscribing waits for.
#pragma once

#include <atomic>

#include "monitor/monitor.h"

namespace leadline {

// Marks the thread as inside an event. Refuses to nest: an event caused by handling an event is not one of the program.
class Monitor::Busy {
 public:
  Busy(Monitor& monitor, ThreadState& state) noexcept : state_(state) {
    const uint32_t number = state.busy.load(std::memory_order_relaxed);
    entered_ = (number & 1) == 0;
    if (!entered_) return;
    if (monitor.fence_needed_) {
      state.busy.exchange(number + 1, std::memory_order_seq_cst);
    } else {
      state.busy.store(number + 1, std::memory_order_relaxed);
      std::atomic_signal_fence(std::memory_order_seq_cst);  // who waits brings the real barrier
    }
    // Only now, and never inside a callback: who changes the version waits for those that are inside, so none of them
    // meets a new subscriber with the state of an old one.
    if (state.version != monitor.version_.load(std::memory_order_acquire)) [[unlikely]]
      monitor.bring_up_to_date(state);
  }
  ~Busy() {
    if (entered_) state_.busy.store(state_.busy.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;
  explicit operator bool() const noexcept { return entered_; }

 private:
  ThreadState& state_;
  bool entered_;
};

}  // namespace leadline
