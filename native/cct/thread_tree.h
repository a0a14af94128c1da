// The calling context tree of one thread, with its own strings and frames.
//
// Only the owning thread writes; any thread may read at the same time (the writer makes snapshots this way). Nothing
// here locks, and look-ups that hit allocate nothing. When the process has reached its limit of nodes, or memory is
// short, the loss nodes_dropped is counted and what is measured falls to the parent.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "base/chunked_array.h"
#include "base/ids.h"
#include "base/losses.h"
#include "base/spin_lock.h"
#include "base/string_table.h"
#include "cct/frame_table.h"
#include "cct/node_table.h"
#include "cct/step_table.h"

namespace leadline {

// What the `threads` table says of a thread beside its tree. Sums are written by the thread, relaxed.
struct ThreadStats {
  std::atomic<std::int64_t> operator_ns{0};  // wall time inside outermost operators
  std::atomic<std::int64_t> looked_ns{0};    // of those that were looked at the wall time, and the CPU time
  std::atomic<std::int64_t> looked_cpu_ns{0};
  std::atomic<std::int64_t> data_ns{0};   // wall time inside data loading, outside operators
  std::atomic<std::int64_t> first_ns{0};  // CLOCK_MONOTONIC, less the pauses before, of the first and last event
  std::atomic<std::int64_t> last_ns{0};
  std::atomic<std::int64_t> cpu_ns{0};  // CPU time between the two

  // The two at one look at the clocks, the CPU's before the wall's; one look at a time. Whoever looks may wait for a
  // core in between while the thread runs on: what it runs meanwhile is told with the next look, so that between any
  // two looks no thread ran for longer than it was there. The lag is never above the longest of those waits.
  void looked_at(std::int64_t ran_ns, std::int64_t now_ns) noexcept;
  struct Times {
    std::int64_t wall_ns = 0;
    std::int64_t cpu_ns = 0;
  };
  // Of one look, also while another one is taken.
  Times times() const noexcept;

 private:
  mutable SpinLock looking_;
};

class ThreadTree {
 public:
  // Where a graft points: a node of this or another thread's tree.
  struct GraftTarget {
    ThreadIndex thread;
    NodeId node;
  };

  ThreadTree(ThreadIndex index, std::uint64_t tid, std::string_view name, NodeBudget& budget, std::uint32_t max_frames,
             LossCounters& losses);

  // --- the owning thread only --------------------------------------------------------------------------------------

  StringId string(std::string_view text) noexcept {
    bool refused = false;
    const StringId id = strings_.intern(text, &refused);
    if (refused) count_dropped();
    return id;
  }

  // kNoFrame when there is no room; child() with kNoFrame is the parent.
  FrameId frame(const FrameKey& key) noexcept { return frames_.intern(key); }

  NodeId root() const noexcept { return NodeId{0}; }  // the thread frame

  NodeId child(NodeId parent, FrameId frame) noexcept {
    const NodeId node = frame == kNoFrame ? kNoNode : nodes_.child(parent, frame);
    if (node != kNoNode) return node;
    count_dropped();
    return parent;
  }

  // A child of root() that stands for a node of another thread's tree: when a segment is written its children hang
  // there.
  NodeId graft(ThreadIndex thread, NodeId node) noexcept;

  void add(NodeId node, MetricKind metric, std::int16_t device, std::int32_t stream, std::int64_t value) noexcept {
    const NodeTable::Added added = nodes_.add(node, {metric, device, stream}, value);
    if (added != NodeTable::Added::kHere) [[unlikely]]
      count_moved(added);
  }

  void add(NodeId node, MetricKey key, const MetricValues& values) noexcept {
    const NodeTable::Added added = nodes_.add(node, key, values);
    if (added != NodeTable::Added::kHere) count_moved(added);
  }

  // The same for who keeps places: of a node of this tree; a child by a name that only who keeps them knows.
  using Place = NodeTable::Place;
  void prefetch(NodeId node) noexcept { nodes_.place(node)->prefetch(*nodes_.place(nodes_.parent(node))); }
  Place* place(NodeId node) noexcept { return nodes_.place(node); }
  void add(Place& place, MetricKey key, std::int64_t value) noexcept {
    const NodeTable::Added added = nodes_.add(place, key, value);
    if (added != NodeTable::Added::kHere) [[unlikely]]
      count_moved(added);
  }
  void count_recorded(NodeId node) noexcept { nodes_.count_recorded(node); }
  void forget_names() noexcept { nodes_.forget_names(); }

  ThreadStats& stats() noexcept { return stats_; }

  // Of the steps whose borders the thread crosses; made when it crosses the first, nullptr where memory is short.
  StepTable* make_step_table() noexcept;

  // --- any thread --------------------------------------------------------------------------------------------------

  ThreadIndex index() const noexcept { return index_; }
  std::uint64_t tid() const noexcept { return tid_.load(std::memory_order_relaxed); }
  std::string_view name() const noexcept { return strings_.text(name_.load(std::memory_order_acquire)); }
  const ThreadStats& stats() const noexcept { return stats_; }
  // nullptr where it crossed none.
  const StepTable* step_table() const noexcept { return step_table_.load(std::memory_order_acquire); }

  std::uint32_t node_count() const noexcept { return nodes_.size(); }
  NodeId parent(NodeId node) const noexcept { return nodes_.parent(node); }
  FrameId frame_of(NodeId node) const noexcept { return nodes_.frame(node); }  // kNoFrame at a graft
  bool is_graft(NodeId node) const noexcept { return nodes_.frame(node) == kNoFrame; }
  GraftTarget graft_target(NodeId graft) const noexcept;
  const FrameKey& frame_key(FrameId frame) const noexcept { return frames_[frame]; }
  std::string_view text(StringId string) const noexcept { return strings_.text(string); }  // ends with a NUL

  const StringTable& strings() const noexcept { return strings_; }
  const FrameTable& frames() const noexcept { return frames_; }
  const NodeTable& nodes() const noexcept { return nodes_; }

  std::size_t held_bytes() const noexcept;

 private:
  friend class TreeRegistry;
  struct Graft {
    GraftTarget target;
    NodeId node;  // the node of this tree that stands for it
  };
  void count_dropped() noexcept;
  void count_moved(NodeTable::Added added) noexcept;

  ThreadIndex index_;
  std::atomic<std::uint64_t> tid_;
  StringTable strings_;
  FrameTable frames_;
  NodeTable nodes_;
  ChunkedArray<Graft, 16> grafts_;  // ordered by node
  IndexTable graft_index_;
  std::atomic<StringId> name_;
  ThreadStats stats_;
  std::unique_ptr<StepTable> owned_step_table_;
  std::atomic<StepTable*> step_table_{nullptr};
  LossCounters* losses_;
};

}  // namespace leadline
