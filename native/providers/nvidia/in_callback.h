// Who is inside a callback of CUPTI, so that nothing that a callback touches is freed meanwhile.
//
// A thread of the program may be stopped by the system anywhere in a callback. Each counts itself in and out in a place
// of its own, with plain stores, since a launch has four callbacks; who waits brings the barrier (base/membarrier.h).
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>

namespace leadline::nvidia {

class Measuring;

class InCallback {
 public:
  InCallback() noexcept : thread_(of_this_thread()) {
    enter(thread_);
    measuring_ = in_use_.load(std::memory_order_seq_cst);
  }
  ~InCallback() { leave(thread_); }
  InCallback(const InCallback&) = delete;
  InCallback& operator=(const InCallback&) = delete;
  explicit operator bool() const { return measuring_ != nullptr; }
  Measuring* operator->() const { return measuring_; }
  Measuring& operator*() const { return *measuring_; }

  // The one that callbacks may use from now on; null: none.
  static void use(Measuring* measuring) noexcept;
  // No longer, where it is this one.
  static void forget(Measuring* measuring) noexcept;
  // Every thread that was inside a callback has left it since. False when one has not within `patience`: it may go on
  // at any time.
  static bool wait(std::chrono::milliseconds patience) noexcept;
  // The child of a fork: the other threads are not here.
  static void after_fork() noexcept;

 private:
  struct alignas(64) Thread {
    std::atomic<std::uint32_t> inside{0};  // how many callbacks, one inside the other
    std::atomic<bool> taken{false};
  };
  static constexpr std::size_t kThreads = 256;

  static Thread* of_this_thread() noexcept { return mine_ != nullptr ? mine_ : find_place(); }
  static Thread* find_place() noexcept;
  static bool gone(const Thread& thread, std::chrono::steady_clock::time_point until) noexcept;

  static void enter(Thread* thread) noexcept {
    if (shared(thread) || barrier_needed_.load(std::memory_order_relaxed)) [[unlikely]] {
      thread->inside.fetch_add(1, std::memory_order_seq_cst);
      return;
    }
    thread->inside.store(thread->inside.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);  // who waits brings the real one
  }
  static void leave(Thread* thread) noexcept {
    if (shared(thread)) [[unlikely]] {
      thread->inside.fetch_sub(1, std::memory_order_release);
      return;
    }
    thread->inside.store(thread->inside.load(std::memory_order_relaxed) - 1, std::memory_order_release);
  }
  static bool shared(const Thread* thread) noexcept { return thread == &threads_[kThreads]; }

  static std::atomic<Measuring*> in_use_;
  static std::atomic<bool> barrier_needed_;
  static std::array<Thread, kThreads + 1>
      threads_;  // the last serves every thread that found none, or has given its back
  static thread_local constinit __attribute__((tls_model("initial-exec"))) Thread* mine_;

  Thread* thread_;
  Measuring* measuring_;
};

}  // namespace leadline::nvidia
