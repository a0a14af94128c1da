// A lock for rare, short sections that must also be usable in a fork child, where the holder may not exist any more.
#pragma once

#include <sched.h>

#include <atomic>

namespace leadline {

class SpinLock {
 public:
  void lock() noexcept {
    while (held_.exchange(true, std::memory_order_acquire)) sched_yield();
  }
  bool try_lock() noexcept {
    return !held_.load(std::memory_order_relaxed) && !held_.exchange(true, std::memory_order_acquire);
  }
  void unlock() noexcept { held_.store(false, std::memory_order_release); }

  // In a fork child: whoever held it is gone.
  void reset() noexcept { held_.store(false, std::memory_order_relaxed); }

 private:
  std::atomic<bool> held_{false};
};

}  // namespace leadline
