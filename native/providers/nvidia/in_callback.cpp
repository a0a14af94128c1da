#include "providers/nvidia/in_callback.h"

#include <thread>

#include "base/membarrier.h"

namespace leadline::nvidia {

constinit std::atomic<Measuring*> InCallback::in_use_{nullptr};
constinit std::atomic<bool> InCallback::barrier_needed_{true};
constinit std::array<InCallback::Thread, InCallback::kThreads + 1> InCallback::threads_{};
constinit thread_local __attribute__((tls_model("initial-exec"))) InCallback::Thread* InCallback::mine_ = nullptr;

// A callback may come while a thread ends, after this one's objects are gone: it then counts in the shared place.
InCallback::Thread* InCallback::find_place() noexcept {
  Thread* const shared_place = &threads_[kThreads];
  struct AtThreadEnd {
    ~AtThreadEnd() {
      Thread* const place = mine_;
      mine_ = &threads_[kThreads];
      if (place != mine_) place->taken.store(false, std::memory_order_release);
    }
  };
  mine_ = shared_place;
  for (std::size_t i = 0; i < kThreads; ++i) {
    bool taken = false;
    if (!threads_[i].taken.compare_exchange_strong(taken, true, std::memory_order_acq_rel)) continue;
    mine_ = &threads_[i];
    thread_local AtThreadEnd at_end;
    static_cast<void>(at_end);
    break;
  }
  return mine_;
}

void InCallback::use(Measuring* measuring) noexcept {
  barrier_needed_.store(!register_membarrier(), std::memory_order_seq_cst);
  in_use_.store(measuring, std::memory_order_seq_cst);
}

void InCallback::forget(Measuring* measuring) noexcept {
  in_use_.compare_exchange_strong(measuring, nullptr, std::memory_order_seq_cst);
}

bool InCallback::wait(std::chrono::milliseconds patience) noexcept {
  if (!barrier_needed_.load(std::memory_order_relaxed)) membarrier();
  const auto until = std::chrono::steady_clock::now() + patience;
  bool all = true;
  for (const Thread& thread : threads_) all = gone(thread, until) && all;
  return all;
}

bool InCallback::gone(const Thread& thread, std::chrono::steady_clock::time_point until) noexcept {
  while (thread.inside.load(std::memory_order_seq_cst) > 0) {
    if (std::chrono::steady_clock::now() >= until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

void InCallback::after_fork() noexcept {
  in_use_.store(nullptr, std::memory_order_relaxed);
  for (Thread& thread : threads_) {
    if (&thread == mine_) continue;
    thread.inside.store(0, std::memory_order_relaxed);
    thread.taken.store(false, std::memory_order_relaxed);
  }
}

}  // namespace leadline::nvidia
