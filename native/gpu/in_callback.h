// Who is inside a callback of a vendor's library, so that nothing that a callback touches is freed meanwhile.
//
// A thread of the program may be stopped by the system anywhere in a callback. Each counts itself in and out in a place
// of its own, with plain stores, since a launch has several callbacks; who waits brings the barrier
// (base/membarrier.h).
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

#include "base/membarrier.h"

namespace leadline::gpu {

// `Measuring`: what a provider's callbacks work on, one kind per provider.
template <class Measuring>
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
  static void use(Measuring* measuring) noexcept {
    barrier_needed_.store(!register_membarrier(), std::memory_order_seq_cst);
    in_use_.store(measuring, std::memory_order_seq_cst);
  }
  // No longer, where it is this one.
  static void forget(Measuring* measuring) noexcept {
    in_use_.compare_exchange_strong(measuring, nullptr, std::memory_order_seq_cst);
  }
  // Every thread that was inside a callback has left it since. False when one has not within `patience`: it may go on
  // at any time.
  static bool wait(std::chrono::milliseconds patience) noexcept {
    if (!barrier_needed_.load(std::memory_order_relaxed)) membarrier();
    const auto until = std::chrono::steady_clock::now() + patience;
    bool all = true;
    for (const Thread& thread : threads_) all = gone(thread, until) && all;
    return all;
  }
  // The child of a fork: the other threads are not here.
  static void after_fork() noexcept {
    in_use_.store(nullptr, std::memory_order_relaxed);
    for (Thread& thread : threads_) {
      if (&thread == mine_) continue;
      thread.inside.store(0, std::memory_order_relaxed);
      thread.taken.store(false, std::memory_order_relaxed);
    }
  }

 private:
  struct alignas(64) Thread {
    std::atomic<std::uint32_t> inside{0};  // how many callbacks, one inside the other
    std::atomic<bool> taken{false};
  };
  static constexpr std::size_t kThreads = 256;

  static Thread* of_this_thread() noexcept { return mine_ != nullptr ? mine_ : find_place(); }
  // A callback may come while a thread ends, after this one's objects are gone: it then counts in the shared place.
  static Thread* find_place() noexcept {
    struct AtThreadEnd {
      ~AtThreadEnd() {
        Thread* const place = mine_;
        mine_ = &threads_[kThreads];
        if (place != mine_) place->taken.store(false, std::memory_order_release);
      }
    };
    mine_ = &threads_[kThreads];
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
  static bool gone(const Thread& thread, std::chrono::steady_clock::time_point until) noexcept {
    while (thread.inside.load(std::memory_order_seq_cst) > 0) {
      if (std::chrono::steady_clock::now() >= until) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  }

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

  constinit inline static std::atomic<Measuring*> in_use_{nullptr};
  constinit inline static std::atomic<bool> barrier_needed_{true};
  // The last serves every thread that found none, or has given its back.
  constinit inline static std::array<Thread, kThreads + 1> threads_{};
  constinit inline static thread_local Thread* mine_ __attribute__((tls_model("initial-exec"))) = nullptr;

  Thread* thread_;
  Measuring* measuring_;
};

}  // namespace leadline::gpu
