#include "gpu/sampling_windows.h"

#include <algorithm>
#include <chrono>

#include "base/own_thread.h"
#include "gpu/measure.h"
#include "leadline/monitor.h"

namespace leadline::gpu {

using std::chrono::duration;

SamplingWindows::~SamplingWindows() {
  if (thread_.joinable()) thread_.detach();  // only where stop() could not be reached
}

void SamplingWindows::begin(std::int64_t now_ns) {
  const std::lock_guard lock(duty_mutex_);
  duty_.begin(now_ns);
}

void SamplingWindows::start_thread() {
  const std::lock_guard lock(wake_mutex_);
  if (window_s_ <= 0 || ending_ || thread_.joinable()) return;
  thread_ = own_thread([this] {
    try {
      run();
    } catch (...) {
      count_loss(LossKind::kInternalError, 1, "Windows of sampling or counting ended early for lack of memory.");
    }
    const std::lock_guard ended(wake_mutex_);
    ended_ = true;
    wake_.notify_all();
  });
}

void SamplingWindows::open() {
  if (owner_.prepare) owner_.prepare();
  const std::int64_t before = leadline_monitor_now();
  is_open_ = true;
  opened_ns_ = before;
  owner_.open();
  opening_cost_ns_ = leadline_monitor_now() - before;
}

void SamplingWindows::close() {
  if (!is_open_) return;
  is_open_ = false;
  const std::int64_t before = leadline_monitor_now();
  owner_.close();
  const std::int64_t now = leadline_monitor_now();
  const std::lock_guard lock(duty_mutex_);
  ++counters_.windows;
  counters_.open_ns += before - opened_ns_;
  duty_.window(now, now - before + opening_cost_ns_);
}

void SamplingWindows::spend(std::int64_t ns) noexcept {
  if (ns <= 0) return;
  const std::lock_guard lock(duty_mutex_);
  duty_.spend(leadline_monitor_now(), ns);
}

WindowCounters SamplingWindows::counters() const {
  const std::lock_guard lock(duty_mutex_);
  WindowCounters counters = counters_;
  counters.spent_ns = duty_.spent_ns();
  return counters;
}

void SamplingWindows::run() {
  constexpr double kLookS = 0.1;  // how often a program that rests, or has nothing to measure yet, is looked at
  std::unique_lock wake(wake_mutex_);
  while (!ending_) {
    std::int64_t rest_ns = 0;
    {
      const std::lock_guard lock(duty_mutex_);
      rest_ns = duty_.rest_ns(leadline_monitor_now());
    }
    const bool ready = !paused_.load(std::memory_order_relaxed) && owner_.ready();
    if (ready && owner_.prepare) {
      wake.unlock();
      owner_.prepare();
      wake.lock();
      if (ending_) break;
    }
    if (!ready) {
      rest_ns = std::max<std::int64_t>(rest_ns, static_cast<std::int64_t>(kLookS * 1e9));
    }
    if (rest_ns > 0) {
      wake_.wait_for(wake, duration<double>(std::min(static_cast<double>(rest_ns) / 1e9, kLookS)));
      continue;
    }
    wake.unlock();
    open();
    wake.lock();
    wake_.wait_for(wake, duration<double>(window_s_), [this] { return ending_; });
    wake.unlock();
    close();
    wake.lock();
  }
}

bool SamplingWindows::stop(std::chrono::milliseconds limit) {
  {
    std::unique_lock lock(wake_mutex_);
    ending_ = true;
    wake_.notify_all();
    const auto until = std::chrono::system_clock::now() + limit;
    while (thread_.joinable() && !ended_) {
      if (wake_.wait_until(lock, until) != std::cv_status::timeout || ended_) continue;
      thread_.detach();
      return false;
    }
  }
  if (thread_.joinable()) thread_.join();
  close();
  return true;
}

void SamplingWindows::abandon() noexcept {
  if (thread_.joinable()) thread_.detach();
}

}  // namespace leadline::gpu
