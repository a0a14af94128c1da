// Whether a thread is inside an event; what unsubscribing waits for.
#pragma once

#include <atomic>

#include "monitor/monitor.h"

namespace leadline {

// Marks the thread as inside an event. Refuses to nest: an event caused by handling an event is not one of the program.
class Monitor::Busy {
 public:
  Busy(ThreadState& state, bool fence) noexcept : state_(state), entered_(!state.busy.load(std::memory_order_relaxed)) {
    if (!entered_) return;
    if (fence) {
      state_.busy.exchange(true, std::memory_order_seq_cst);
    } else {
      state_.busy.store(true, std::memory_order_relaxed);
      std::atomic_signal_fence(std::memory_order_seq_cst);  // unsubscribe brings the real barrier
    }
  }
  ~Busy() {
    if (entered_) state_.busy.store(false, std::memory_order_release);
  }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;
  explicit operator bool() const noexcept { return entered_; }

 private:
  ThreadState& state_;
  bool entered_;
};

}  // namespace leadline
