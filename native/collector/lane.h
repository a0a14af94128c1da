// What the collector keeps for one thread: its tree and the frames already translated.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/hash.h"
#include "cct/thread_tree.h"
#include "collector/event_window.h"
#include "collector/forward_threads.h"
#include "collector/place_cache.h"
#include "collector/remembered_walks.h"
#include "collector/step_counters.h"
#include "stack/call_path.h"
#include "stack/native_source.h"
#include "stack/path_frames.h"

namespace leadline {

// A place as the monitor hands it out: which collector's it is (8 bits), the number of the thread's tree and one (24),
// and the node.
constexpr leadline_context packed_place(uint8_t collector, ThreadIndex tree, NodeId node) noexcept {
  return uint64_t{collector} << 56 | (uint64_t{raw(tree)} + 1) << 32 | raw(node);
}
constexpr uint8_t collector_of(leadline_context place) noexcept { return static_cast<uint8_t>(place >> 56); }
// kNoThread for no place.
constexpr ThreadIndex tree_of(leadline_context place) noexcept {
  return ThreadIndex{(static_cast<uint32_t>(place >> 32) & 0xffffff) - 1};
}
constexpr NodeId node_of(leadline_context place) noexcept { return NodeId{static_cast<uint32_t>(place)}; }

class alignas(64) Lane {
  // What every operator needs, in one line of the cache.
 public:
  ThreadTree* tree = nullptr;
  ForwardThreads::Thread* forward = nullptr;  // where its sequence numbers are kept
  uint64_t life = 0;                          // of the thread that it is for
  int64_t operator_ns = 0;                    // as in ThreadStats, without the atomics

 private:
  leadline_context root_place_ = 0;  // of its tree, see packed_place(); the others differ from it in their node
  int64_t sequence_ = -1;            // of the operator that began last with one, and where that is
  NodeId numbered_ = kNoNode;
  int32_t until_look_ = 1;  // outermost operators; 0 in one that is looked at

 public:
  bool bound = false;  // it was asked for `forward`

  Lane(EventLane& events, const PathFrames& frames) : events(events), frames(frames) {}

  // A thread begins (or another one takes over the lane of one that ended, which nobody else looks at).
  void begin(ThreadTree& its_tree, uint8_t collector) noexcept;

  // The tree's frame for a frame of the path.
  FrameId frame(PathFrameId id) noexcept {
    const auto index = static_cast<uint32_t>(id);
    if (index < translated_.size() && translated_[index] != kNoFrame) [[likely]]
      return translated_[index];
    return translate(index);
  }
  // The tree's frame for a frame that somebody else names.
  FrameId frame(const leadline_path_frame& named) noexcept;
  FrameId phase(std::string_view name) noexcept;
  // Of a call in native code; kNoFrame for what is not shown.
  FrameId native_frame(uintptr_t address, const NativeSource& source);
  FrameId plain(FrameKind kind, std::string_view name, std::string_view file, int32_t line, std::string_view detail,
                uint64_t address = 0) noexcept;

  // The place of a node of another thread in this thread's tree.
  NodeId graft(ThreadIndex thread, NodeId node) noexcept;
  // The same frames as the path to (thread, node), below `parent`. For the capture path of CUDA graphs.
  NodeId copy_path(const ThreadTree& other, NodeId node, NodeId parent) noexcept;

  leadline_context token(NodeId node) const noexcept { return root_place_ | raw(node); }

  // An operator with an autograd number begins at a place. Numbers of a thread grow where autograd records: then it has
  // recorded the operator that began last with the number before, the innermost of several.
  void follow_autograd(int64_t sequence, NodeId node) noexcept {
    if (sequence > sequence_ && numbered_ != kNoNode) tree->count_recorded(numbered_);
    sequence_ = sequence;
    numbered_ = node;
  }

  // Where operators hang below native frames, by the place above and the calls between.
  std::unordered_map<uint64_t, ThreadTree::Place*> native_places;
  RememberedWalks walks;

  // Device work that this thread reports: its places.
  PlaceCache places;

  EventLane& events;
  const PathFrames& frames;
  FrameId backward_phase = kNoFrame;
  int64_t cpu_at_begin_ns = 0;
  int64_t cpu_begin_ns = 0;  // the same, less what whoever had the tree before ran
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
  // An outermost operator begins, or ends. Its CPU time is measured of as many as take about a millisecond to
  // come, drawn at random, so that each is as likely as its neighbours and two system calls are lost in that
  // millisecond.
  void outermost_begins() noexcept {
    if (--until_look_ > 0) [[likely]]
      return;
    until_look_ = 0;
    look_cpu_ns_ = cpu_ns();
  }
  // `earlier_ns`: of one that came back, what it took before; its CPU time is not known.
  void outermost_ended(int64_t begin_ns, int64_t duration_ns, int64_t earlier_ns = 0) noexcept {
    operator_ns += earlier_ns + duration_ns;
    ++operators;
    tree->stats().operator_ns.store(operator_ns, std::memory_order_relaxed);
    if (until_look_ == 0 && earlier_ns == 0) [[unlikely]]
      looked(begin_ns, duration_ns);
  }

  // A phase ends, or a stay in it: its time that no other one inside has taken, where steps have a column for it.
  void phase_ended(const Scope& scope, PathFrameId frame, int64_t duration_ns) noexcept;

  StepCounters step_counters;
  StepValues step_values;  // but operators
  int64_t phases_ns = 0;   // of phases that steps have a column for

  bool has_cpu_clock = false;
  std::atomic<bool> alive{false};
  int64_t operators = 0;      // outermost ones that ended
  int64_t border_cpu_ns = 0;  // CPU time of the thread when a region or phase last began or ended

 private:
  static constexpr int64_t kCpuRuns = INT64_MIN;
  int32_t drawn_ = 1;  // what it was when the one before had ended
  uint32_t random_ = 0;
  int64_t look_cpu_ns_ = 0;
  int64_t looked_at_ns_ = 0;  // when the one before had ended
  FrameId translate(uint32_t index) noexcept;
  void looked(int64_t begin_ns, int64_t duration_ns) noexcept;

  std::atomic<int64_t> cpu_stands_ns_{kCpuRuns};  // where cpu_ns() stands while measuring is paused
  std::atomic<int64_t> cpu_paused_ns_{0};
  std::vector<FrameId> translated_;
  std::unordered_map<uintptr_t, FrameId> native_frames_;
  // A path that was copied, and to where.
  struct Copy {
    ThreadIndex tree;
    NodeId node;
    NodeId parent;
    friend bool operator==(const Copy&, const Copy&) = default;
  };
  struct CopyHash {
    size_t operator()(const Copy& copy) const noexcept {
      return hash_mix(uint64_t{raw(copy.tree)} << 32 | raw(copy.node), raw(copy.parent));
    }
  };
  std::unordered_map<Copy, NodeId, CopyHash> copies_;
};

}  // namespace leadline
