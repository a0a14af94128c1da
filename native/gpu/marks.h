// What each thread was doing when: the last few thousand changes of its place, so that a gap on the device can be
// charged to what the CPU did meanwhile. Written by the thread at API calls and regions; read by the thread that folds
// records. No lock; constant memory per thread; a thread's ring is reused after the thread has
// ended.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "leadline/monitor.h"

namespace leadline::gpu {

class ThreadMarks {
 public:
  static constexpr std::uint64_t kMarks = 4096;

  void add(std::int64_t time_ns, leadline_context context) noexcept {
    const std::uint64_t at = count_.load(std::memory_order_relaxed);
    Mark& mark = marks_[at % kMarks];
    mark.time_ns.store(time_ns, std::memory_order_relaxed);
    mark.context.store(context, std::memory_order_relaxed);
    count_.store(at + 1, std::memory_order_release);
  }

  // Splits [from_ns, to_ns) at the marks in it and calls charge(context, ns) per part, in order. A part without a
  // place, or older than the ring remembers, goes to the place that follows it; the last part, up to to_ns, to
  // `fallback`.
  template <class Charge>
  void split(std::int64_t from_ns, std::int64_t to_ns, leadline_context fallback, Charge&& charge) const noexcept {
    const std::uint64_t count = count_.load(std::memory_order_acquire);
    const std::uint64_t oldest = count > kMarks - kGuard ? count - (kMarks - kGuard) : 0;
    // A thread's marks ascend in time; what is asked for may lie thousands of them back.
    std::uint64_t first = oldest;  // first mark after from_ns
    for (std::uint64_t end = count; first < end;) {
      const std::uint64_t middle = first + (end - first) / 2;
      const bool before = marks_[middle % kMarks].time_ns.load(std::memory_order_relaxed) <= from_ns;
      before ? first = middle + 1 : end = middle;
    }
    leadline_context now = first > oldest ? marks_[(first - 1) % kMarks].context.load(std::memory_order_relaxed) : 0;
    std::int64_t since = from_ns;
    std::int64_t homeless_ns = 0;
    for (std::uint64_t i = first; i < count; ++i) {
      const std::int64_t time = marks_[i % kMarks].time_ns.load(std::memory_order_relaxed);
      if (time >= to_ns) break;
      if (time > since) {
        if (now != 0) {
          charge(now, time - since + homeless_ns);
          homeless_ns = 0;
        } else {
          homeless_ns += time - since;
        }
        since = time;
      }
      now = marks_[i % kMarks].context.load(std::memory_order_relaxed);
    }
    if (to_ns > since || homeless_ns > 0) charge(now != 0 ? now : fallback, to_ns - since + homeless_ns);
  }

 private:
  static constexpr std::uint64_t kGuard = 64;  // the writer may be this far ahead while we read
  struct Mark {
    std::atomic<std::int64_t> time_ns{0};
    std::atomic<leadline_context> context{0};
  };
  std::array<Mark, kMarks> marks_{};
  std::atomic<std::uint64_t> count_{0};
};

class MarksRegistry {
 public:
  static constexpr std::uint32_t kThreads = 1024;
  static constexpr std::uint32_t kNone = kThreads;

  // The calling thread's ring, made on first use; kNone when there are too many threads or no memory.
  std::uint32_t take() noexcept {
    for (std::uint32_t i = 0; i < kThreads; ++i) {
      bool free = false;
      if (used_[i].compare_exchange_strong(free, true, std::memory_order_acq_rel)) {
        if (!rings_[i].load(std::memory_order_relaxed)) {
          rings_[i].store(new (std::nothrow) ThreadMarks, std::memory_order_release);
        }
        if (rings_[i].load(std::memory_order_relaxed)) return i;
        give_back(i);
        return kNone;
      }
    }
    return kNone;
  }
  void give_back(std::uint32_t index) noexcept {
    if (index < kThreads) used_[index].store(false, std::memory_order_release);
  }
  ThreadMarks* at(std::uint32_t index) noexcept {
    return index < kThreads ? rings_[index].load(std::memory_order_acquire) : nullptr;
  }
  ~MarksRegistry() {
    for (auto& ring : rings_) delete ring.load(std::memory_order_relaxed);
  }

 private:
  std::array<std::atomic<bool>, kThreads> used_{};
  std::array<std::atomic<ThreadMarks*>, kThreads> rings_{};
};

}  // namespace leadline::gpu
