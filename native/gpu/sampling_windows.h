// A thread that opens and closes windows of a costly way of measuring, as often as its budget allows (Duty).
//
// What a window does is the owner's: `open` and `close` run on this thread, or on a test's where no thread is started.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

#include "gpu/duty.h"

namespace leadline::gpu {

struct WindowCounters {
  std::uint64_t windows = 0;
  std::int64_t open_ns = 0;   // of all windows together
  std::int64_t spent_ns = 0;  // what they have cost
};

class SamplingWindows {
 public:
  struct Owner {
    std::function<bool()> ready;  // a window may open: there is something to measure
    std::function<void()> open;
    std::function<void()> close;
    // Before a window opens, whatever has to be done once: no part of its time, nor of what windows cost.
    std::function<void()> prepare = {};
  };
  // `window_s` 0: no thread, windows are opened and closed by who asks.
  SamplingWindows(double budget, double window_s, std::int64_t first_cost_ns, Owner owner)
      : window_s_(window_s), owner_(std::move(owner)), duty_(budget, first_cost_ns) {}
  ~SamplingWindows();
  SamplingWindows(const SamplingWindows&) = delete;
  SamplingWindows& operator=(const SamplingWindows&) = delete;

  void begin(std::int64_t now_ns);
  void start_thread();
  // The thread ends; a window that is open is closed. False: the thread is in a call of the owner's that has not come
  // back within `limit`, so the owner must not be destroyed.
  bool stop(std::chrono::milliseconds limit = std::chrono::seconds{3});
  // The child of a fork: the thread is not here.
  void abandon() noexcept;
  void pause() noexcept { paused_.store(true, std::memory_order_relaxed); }
  void resume() noexcept { paused_.store(false, std::memory_order_relaxed); }

  void open();
  void close();
  // What a window has cost beside the calls of `open` and `close`, when it becomes known.
  void spend(std::int64_t ns) noexcept;
  WindowCounters counters() const;

 private:
  void run();

  const double window_s_;
  const Owner owner_;
  mutable std::mutex duty_mutex_;
  Duty duty_;
  WindowCounters counters_;
  std::int64_t opened_ns_ = 0;  // this and the next two: of the thread that opens windows
  std::int64_t opening_cost_ns_ = 0;
  bool is_open_ = false;
  std::atomic<bool> paused_{false};

  std::mutex wake_mutex_;
  std::condition_variable wake_;
  bool ending_ = false;
  bool ended_ = false;  // the thread
  std::thread thread_;
};

}  // namespace leadline::gpu
