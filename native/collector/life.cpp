// Threads end, measuring pauses and goes on, the process forks.
#include <algorithm>
#include <mutex>
#include <span>

#include "base/abandon.h"
#include "base/clock.h"
#include "collector/collector.h"

namespace leadline {

// 1 to 254: nowhere and LEADLINE_PLACE_THREAD are nobody's.
uint8_t Collector::next_number() noexcept {
  static std::atomic<uint32_t> numbers{0};
  return static_cast<uint8_t>(numbers.fetch_add(1, std::memory_order_relaxed) % 254 + 1);
}

void Collector::on_thread_exit(ThreadState& thread) noexcept {
  auto* lane = static_cast<Lane*>(thread.subscriber);
  if (lane == nullptr || !lane->alive.load(std::memory_order_relaxed)) return;
  const int64_t cpu_ns = lane->cpu_ns() - lane->cpu_begin_ns;
  {
    const std::lock_guard hold(lanes_busy_);
    lane->tree->stats().looked_at(cpu_ns, measured_ns(now_ns()));
  }
  retire(*lane);
}

void Collector::retire(Lane& lane) noexcept {
  if (lane.forward != nullptr) forward_threads_.end(*lane.forward);
  const std::lock_guard hold(lanes_busy_);
  lane.alive.store(false, std::memory_order_relaxed);
  lane.life = 0;
  trees_.retire(*lane.tree);
}

int64_t Collector::measured_ns(int64_t time_ns) const noexcept {
  const int64_t until = paused_.load(std::memory_order_relaxed) ? std::min(time_ns, paused_since_ns_) : time_ns;
  return until - paused_ns_;
}

int64_t Collector::measured_now_ns() const noexcept {
  const std::lock_guard hold(lanes_busy_);
  return measured_ns(now_ns());
}

int64_t Collector::paused_ns() const noexcept {
  const std::lock_guard hold(lanes_busy_);
  const int64_t now = now_ns();
  return now - measured_ns(now);
}

void Collector::refresh_thread_times() noexcept {
  const std::lock_guard hold(lanes_busy_);
  for (const auto& lane : lanes_) {
    if (!lane->alive.load(std::memory_order_relaxed)) continue;
    const int64_t cpu_ns = lane->has_cpu_clock ? thread_cpu_ns(lane->cpu_clock) : -1;
    if (lane->has_cpu_clock && cpu_ns < 0) continue;  // it is just ending, and tells the two itself
    ThreadStats& stats = lane->tree->stats();
    const int64_t ran_ns =
        cpu_ns >= 0 ? lane->cpu_of(cpu_ns) - lane->cpu_begin_ns : stats.cpu_ns.load(std::memory_order_relaxed);
    stats.looked_at(ran_ns, measured_ns(now_ns()));
  }
  refresh_silent();
}

std::vector<OpenPlace> Collector::open_places() const {
  std::vector<leadline_thread> threads(64);
  size_t count = threads.size();
  while (Monitor::instance().threads(threads.data(), &count) == LEADLINE_ERROR_FULL) {
    threads.resize(count + 16);
    count = threads.size();
  }
  std::vector<OpenPlace> places;
  for (const leadline_thread& thread : std::span(threads).first(count)) {
    if (thread.place != 0 && is_place(thread.place))
      places.push_back({thread.tid, tree_of(thread.place), node_of(thread.place)});
  }
  return places;
}

void Collector::pause() noexcept {
  const std::lock_guard hold(lanes_busy_);
  if (paused_.load(std::memory_order_relaxed)) return;
  for (const auto& lane : lanes_) {
    const int64_t cpu_ns = lane->has_cpu_clock ? thread_cpu_ns(lane->cpu_clock) : -1;
    if (lane->alive.load(std::memory_order_relaxed) && cpu_ns >= 0) lane->stop_cpu(cpu_ns);
    if (lane->alive.load(std::memory_order_relaxed) && lane->forward != nullptr) lane->forward->ring.interrupt();
  }
  for (Silent& silent : silent_) silent.cpu_stands_ns = thread_cpu_ns(silent.cpu);
  paused_since_ns_ = now_ns();
  paused_.store(true, std::memory_order_relaxed);
}

void Collector::resume() noexcept {
  const std::lock_guard hold(lanes_busy_);
  if (!paused_.load(std::memory_order_relaxed)) return;
  const int64_t rested_ns =
      now_ns() - paused_since_ns_;  // before the threads' clocks: none runs for longer than it was
  for (const auto& lane : lanes_) {
    const int64_t cpu_ns = lane->has_cpu_clock ? thread_cpu_ns(lane->cpu_clock) : -1;
    if (lane->alive.load(std::memory_order_relaxed) && cpu_ns >= 0) lane->run_cpu(cpu_ns);
  }
  for (Silent& silent : silent_) {
    const int64_t cpu_ns = thread_cpu_ns(silent.cpu);
    if (cpu_ns >= 0) silent.cpu_begin_ns += cpu_ns - silent.cpu_stands_ns;
  }
  // A step that is being taken has begun later by as much.
  if (last_step_ns_.load(std::memory_order_relaxed) != 0) last_step_ns_.fetch_add(rested_ns, std::memory_order_relaxed);
  paused_ns_ += rested_ns;
  paused_.store(false, std::memory_order_relaxed);
}

size_t Collector::held_bytes() const noexcept {
  size_t lane_bytes = 0;
  {
    const std::lock_guard hold(lanes_busy_);
    for (const auto& lane : lanes_) lane_bytes += sizeof(Lane) + lane->places.held_bytes();
  }
  return lane_bytes + trees_.held_bytes() + ledger_.held_bytes() + window_.held_bytes() + forward_threads_.held_bytes();
}

void Collector::after_fork() noexcept {
  lanes_busy_.reset();
  abandon(lanes_);
  abandon(silent_);
  number_ = next_number();
  forward_threads_.clear();
  trees_.clear();
  ledger_.clear();
  window_.after_fork();
  devices_.clear();
  compiled_.after_fork();
  paused_ns_ = 0;
  paused_since_ns_ = now_ns();
  steps_.store(0, std::memory_order_relaxed);
  step_place_.store(0, std::memory_order_relaxed);
  other_place_.store(0, std::memory_order_relaxed);
  other_count_.store(0, std::memory_order_relaxed);
  last_step_ns_.store(0, std::memory_order_relaxed);
  steps_ended_.store(0, std::memory_order_relaxed);
  for (auto& end : step_ends_ns_) end.store(0, std::memory_order_relaxed);
}

}  // namespace leadline
