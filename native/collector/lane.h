// What the collector keeps for one thread: its tree and the frames already translated.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "cct/thread_tree.h"
#include "collector/event_window.h"
#include "collector/forward_threads.h"
#include "collector/place_cache.h"
#include "stack/path_frames.h"

namespace leadline {

class Lane {
 public:
  Lane(EventLane& events, const PathFrames& frames) : events(events), frames(frames) {}

  // A thread begins (or another one takes over the lane of one that ended, which nobody else looks at).
  void begin(ThreadTree& its_tree) noexcept;

  // The tree's frame for a frame of the path.
  FrameId frame(PathFrameId id) noexcept {
    const auto index = static_cast<uint32_t>(id);
    if (index < translated_.size() && translated_[index] != kNoFrame) [[likely]]
      return translated_[index];
    return translate(index);
  }
  FrameId phase(std::string_view name) noexcept;
  FrameId plain(FrameKind kind, std::string_view name, std::string_view file, int32_t line, std::string_view detail,
                uint64_t address = 0) noexcept;

  // The place of a node of another thread in this thread's tree.
  NodeId graft(ThreadIndex thread, NodeId node) noexcept;
  // The same frames as the path to (thread, node), below `parent`. For the capture path of CUDA graphs.
  NodeId copy_path(const ThreadTree& other, NodeId node, NodeId parent) noexcept;

  uint64_t token(NodeId node) const noexcept { return (uint64_t{raw(tree->index())} + 1) << 32 | raw(node); }

  // Device work that this thread reports: its places.
  PlaceCache places;

  ThreadTree* tree = nullptr;
  EventLane& events;
  ForwardThreads::Thread* forward = nullptr;  // where its sequence numbers are kept
  const PathFrames& frames;
  FrameId backward_phase = kNoFrame;
  int64_t cpu_begin_ns = 0;
  clockid_t cpu_clock = 0;
  // CPU time that the thread used while measuring ran, from any beginning.
  int64_t cpu_ns() const noexcept { return cpu_of(thread_cpu_ns()); }
  int64_t cpu_of(int64_t thread_cpu_ns) const noexcept {
    const int64_t stands_ns = cpu_stands_ns_.load(std::memory_order_acquire);
    return stands_ns != kCpuRuns ? stands_ns : thread_cpu_ns - cpu_paused_ns_.load(std::memory_order_relaxed);
  }
  // Measuring pauses and goes on; given the thread's CPU time. Any thread, one at a time.
  void stop_cpu(int64_t thread_cpu_ns) noexcept {
    cpu_stands_ns_.store(cpu_of(thread_cpu_ns), std::memory_order_release);
  }
  void run_cpu(int64_t thread_cpu_ns) noexcept {
    const int64_t stands_ns = cpu_stands_ns_.load(std::memory_order_relaxed);
    if (stands_ns == kCpuRuns) return;
    cpu_paused_ns_.store(thread_cpu_ns - stands_ns, std::memory_order_relaxed);
    cpu_stands_ns_.store(kCpuRuns, std::memory_order_release);
  }
  bool has_cpu_clock = false;
  std::atomic<bool> alive{false};
  uint64_t life = 0;          // of the thread that it is for
  bool bound = false;         // it was asked for `forward`
  int64_t operator_ns = 0;    // as in ThreadStats, without the atomics
  int64_t border_cpu_ns = 0;  // CPU time of the thread when a region or phase last began or ended

 private:
  static constexpr int64_t kCpuRuns = INT64_MIN;
  FrameId translate(uint32_t index) noexcept;

  std::atomic<int64_t> cpu_stands_ns_{kCpuRuns};  // where cpu_ns() stands while measuring is paused
  std::atomic<int64_t> cpu_paused_ns_{0};
  std::vector<FrameId> translated_;
  std::unordered_map<uint64_t, NodeId> copies_;
};

}  // namespace leadline
