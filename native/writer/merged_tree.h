// All trees of the process as one: root, process, threads, and below them what each thread measured, grafts resolved.
// It only grows: a node, frame or string keeps its number from one update to the next.
//
// Where the runtime of a compiler has named what it runs by titles (see CompiledOperations), the frames that these
// stand for take their place: what was measured below an operation that was made from several is shared out among them.
//
// Reads the threads' trees while they are being written: what is published when a node is looked at is taken.
// Works with memory proportional to the trees; throws std::bad_alloc.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/string_table.h"
#include "cct/compiled_operations.h"
#include "cct/frame_table.h"
#include "cct/node_table.h"
#include "cct/tree_registry.h"

namespace leadline {

class MergedTree {
 public:
  explicit MergedTree(const TreeRegistry& trees, const CompiledOperations* compiled = nullptr);
  MergedTree(const MergedTree&) = delete;
  MergedTree& operator=(const MergedTree&) = delete;

  // Takes over what is new of every thread, and all metrics anew. `process_name` and `process_detail` make the frame of
  // the process.
  void update(std::string_view process_name, std::string_view process_detail);

  // The node of this tree for a node of a thread's tree; the process node when there is no such thread or node. Of one
  // that was shared out the node with the largest share.
  NodeId resolve(ThreadIndex thread, NodeId node);

  StringId string(std::string_view text);
  void add(NodeId node, MetricKey key, const MetricValues& values);

  NodeId process_node() const noexcept { return process_node_; }
  NodeId thread_node(ThreadIndex thread) { return state_of(thread).root; }
  bool has_thread(ThreadIndex thread) const noexcept { return raw(thread) < trees_.size(); }
  // Names may change while the program runs; that of a node's own frame is the one at its making.
  FrameId process_frame() const noexcept { return process_frame_; }
  FrameId thread_frame(ThreadIndex thread) { return state_of(thread).frame; }
  std::uint32_t thread_count() const noexcept { return static_cast<std::uint32_t>(threads_.size()); }

  // Grafts whose target does not exist or that point below themselves; their work hangs under their own thread.
  std::uint64_t broken_grafts() const noexcept { return broken_grafts_; }

  std::size_t held_bytes() const noexcept;

  const StringTable& strings() const noexcept { return strings_; }
  const FrameTable& frames() const noexcept { return frames_; }
  const NodeTable& nodes() const noexcept { return nodes_; }

 private:
  // Per thread, what has been taken over: number here for each number there, kUnknown where not yet.
  struct ThreadState {
    NodeId root;
    FrameId frame;  // by its present name
    StringId detail;
    std::vector<std::uint32_t> strings;
    std::vector<std::uint32_t> frames;
    std::vector<std::uint32_t> nodes;
  };
  struct Place {
    ThreadIndex thread;
    NodeId node;
  };
  static constexpr std::uint32_t kUnknown = 0xffffffffu;
  static constexpr std::uint32_t kOnTheWay = 0xfffffffeu;  // being resolved: meeting it again means a circle
  // A number from here on is a place in shared_: nodes that share what was measured at one.
  static constexpr std::uint32_t kShared = 0x80000000u;
  struct Share {
    NodeId node;
    std::uint32_t millionths;
  };
  using Shares = std::vector<Share>;  // the largest first

  ThreadState& state_of(ThreadIndex thread);
  std::uint32_t& number_of(Place place);
  std::uint32_t find(ThreadIndex thread, NodeId node);
  NodeId first_of(std::uint32_t number) const noexcept;
  std::uint32_t child_of(std::uint32_t parent, FrameId frame);
  std::uint32_t below(std::uint32_t parent, Place place);
  std::uint32_t add_shares(Shares shares);
  std::uint32_t parts_below(NodeId program, const CompiledParts& parts);
  FrameId frame(const CompiledFrame& given);
  void share_out(std::uint32_t number, const MetricKey& metric, const MetricValues& values);
  void forget_places();
  bool exists(Place place) const noexcept;
  NodeId break_circle();
  FrameId frame(ThreadIndex thread, FrameId frame);
  FrameId frame_by_name(const ThreadTree& tree, StringId detail);
  StringId string(ThreadIndex thread, StringId string);
  NodeId made(NodeId node) const;
  FrameId made(FrameId frame) const;

  const TreeRegistry& trees_;
  const CompiledOperations* compiled_;
  std::uint64_t compiled_version_ = 0;
  NodeBudget budget_;
  StringTable strings_;
  FrameTable frames_;
  NodeTable nodes_;
  NodeId process_node_ = kNoNode;
  FrameId process_frame_ = kNoFrame;
  std::vector<ThreadState> threads_;
  std::vector<Shares> shared_;
  std::vector<Place> way_;  // of resolve(), kept for its memory
  std::uint64_t broken_grafts_ = 0;
};

}  // namespace leadline
