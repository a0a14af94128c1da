#include "writer/merged_tree.h"

#include <algorithm>
#include <limits>
#include <new>
#include <string>

namespace leadline {
namespace {

// The number for `id`, looked up with grow-on-demand: the thread may have made more since the vector was sized.
std::uint32_t& entry(std::vector<std::uint32_t>& numbers, std::uint32_t id, std::uint32_t unknown) {
  if (id >= numbers.size()) numbers.resize(id + 1, unknown);
  return numbers[id];
}

// CPU time of all outermost operators, from those that were looked at; negative where none was.
std::int64_t operators_ran_ns(const ThreadStats& stats) noexcept {
  constexpr auto relaxed = std::memory_order_relaxed;
  const auto looked_ns = static_cast<double>(stats.looked_ns.load(relaxed));
  if (looked_ns <= 0) return -1;
  const double share = static_cast<double>(stats.looked_cpu_ns.load(relaxed)) / looked_ns;
  return static_cast<std::int64_t>(static_cast<double>(stats.operator_ns.load(relaxed)) * std::min(share, 1.0));
}

}  // namespace

MergedTree::MergedTree(const TreeRegistry& trees)
    : trees_(trees), budget_(std::numeric_limits<std::int64_t>::max()), nodes_(budget_) {
  if (strings_.size() == 0) throw std::bad_alloc();  // not even the empty one
  made(nodes_.append(kNoNode, made(frames_.intern(FrameKey()))));
}

std::size_t MergedTree::held_bytes() const noexcept {
  std::size_t bytes = strings_.held_bytes() + frames_.held_bytes() + nodes_.held_bytes();
  for (const ThreadState& state : threads_) {
    bytes += (state.strings.capacity() + state.frames.capacity() + state.nodes.capacity()) * sizeof(std::uint32_t);
  }
  return bytes;
}

void MergedTree::update(std::string_view process_name, std::string_view process_detail) {
  FrameKey key;
  key.kind = FrameKind::kProcess;
  key.name = string(process_name);
  key.detail = string(process_detail);
  process_frame_ = made(frames_.intern(key));
  if (process_node_ == kNoNode) process_node_ = made(nodes_.child(NodeId{0}, process_frame_));
  nodes_.reset_metrics();
  const std::uint32_t count = trees_.size();
  for (std::uint32_t i = 0; i < count; ++i) {
    const ThreadIndex thread{i};
    const ThreadTree& tree = trees_[thread];
    ThreadState& state = state_of(thread);
    state.frame = frame_by_name(tree, state.detail);
    const std::uint32_t nodes = tree.node_count();
    for (std::uint32_t at = 0; at < nodes; ++at) {
      const NodeId node = resolve(thread, NodeId{at});
      tree.nodes().for_each_metric(NodeId{at}, [&](const MetricKey& metric, const MetricValues& values) {
        if (metric.metric != kLeafTime) return add(node, metric, values);
        add(node, {MetricKind::kTime}, values);
        add(node, {MetricKind::kCallTime}, values);
      });
    }
    if (const std::int64_t ran_ns = operators_ran_ns(tree.stats()); ran_ns >= 0)
      add(state_of(thread).root, {MetricKind::kOperatorRunningTime}, MetricValues::of(ran_ns));
  }
}

NodeId MergedTree::resolve(ThreadIndex thread, NodeId node) {
  Place place{thread, node};
  if (!exists(place)) return process_node_;
  // Upwards until something known, then back down making what is missing. Not recursive: call paths may be very deep.
  std::vector<Place>& way = way_;
  way.clear();
  NodeId known = kNoNode;
  for (;;) {
    std::uint32_t& number = number_of(place);
    if (number == kOnTheWay) {
      known = break_circle();
      break;
    }
    if (number != kUnknown) {
      known = NodeId{number};
      break;
    }
    number = kOnTheWay;
    way.push_back(place);
    const ThreadTree& tree = trees_[place.thread];
    if (!tree.is_graft(place.node)) {
      place.node = tree.parent(place.node);
      continue;
    }
    const ThreadTree::GraftTarget target = tree.graft_target(place.node);
    const Place next{target.thread, target.node};
    if (!exists(next)) {
      ++broken_grafts_;
      known = state_of(place.thread).root;
      break;
    }
    place = next;
  }
  for (; !way.empty(); way.pop_back()) {
    const Place at = way.back();
    const ThreadTree& tree = trees_[at.thread];
    if (!tree.is_graft(at.node)) known = made(nodes_.child(known, frame(at.thread, tree.frame_of(at.node))));
    number_of(at) = raw(known);
  }
  return known;
}

// The way has come back to itself through a graft that points below itself. That graft, the last one on the way, falls
// to its thread; the nodes above it on the way are found again from there.
NodeId MergedTree::break_circle() {
  std::vector<Place>& way = way_;
  ++broken_grafts_;
  while (!trees_[way.back().thread].is_graft(way.back().node)) {
    number_of(way.back()) = kUnknown;
    way.pop_back();
  }
  return state_of(way.back().thread).root;
}

StringId MergedTree::string(std::string_view text) {
  bool refused = false;
  const StringId id = strings_.intern(text, &refused);
  if (refused) throw std::bad_alloc();
  return id;
}

void MergedTree::add(NodeId node, MetricKey key, const MetricValues& values) {
  if (!nodes_.merge(node, key, values)) throw std::bad_alloc();
}

MergedTree::ThreadState& MergedTree::state_of(ThreadIndex thread) {
  // Rows of `threads` are the registry's numbers, so every thread before this one gets its state too.
  while (threads_.size() <= raw(thread)) {
    const ThreadTree& tree = trees_[ThreadIndex{static_cast<std::uint32_t>(threads_.size())}];
    ThreadState state;
    // Threads of one name stay apart. Of a tree that many threads have shared, the first one: every other detail would
    // be kept for ever.
    state.detail = string("{\"tid\": " + std::to_string(tree.tid()) + "}");
    state.frame = frame_by_name(tree, state.detail);
    state.root = made(nodes_.append(process_node_, state.frame));
    state.strings.assign(tree.strings().size(), kUnknown);
    state.frames.assign(tree.frames().size(), kUnknown);
    state.nodes.assign(tree.node_count(), kUnknown);
    state.nodes[0] = raw(state.root);
    threads_.push_back(std::move(state));
  }
  return threads_[raw(thread)];
}

FrameId MergedTree::frame_by_name(const ThreadTree& tree, StringId detail) {
  FrameKey key;
  key.kind = FrameKind::kThread;
  key.name = string(tree.name());
  key.detail = detail;
  return made(frames_.intern(key));
}

std::uint32_t& MergedTree::number_of(Place place) {
  return entry(state_of(place.thread).nodes, raw(place.node), kUnknown);
}

bool MergedTree::exists(Place place) const noexcept {
  return has_thread(place.thread) && raw(place.node) < trees_[place.thread].node_count();
}

FrameId MergedTree::frame(ThreadIndex thread, FrameId frame) {
  std::uint32_t& number = entry(state_of(thread).frames, raw(frame), kUnknown);
  if (number == kUnknown) {
    FrameKey key = trees_[thread].frame_key(frame);
    key.name = string(thread, key.name);
    key.file = string(thread, key.file);
    key.module = string(thread, key.module);
    key.detail = string(thread, key.detail);
    number = raw(made(frames_.intern(key)));
  }
  return FrameId{number};
}

StringId MergedTree::string(ThreadIndex thread, StringId string) {
  std::uint32_t& number = entry(state_of(thread).strings, raw(string), kUnknown);
  if (number == kUnknown) number = raw(this->string(trees_[thread].text(string)));
  return StringId{number};
}

// Tables report missing memory with an id; here it ends the snapshot.
NodeId MergedTree::made(NodeId node) const {
  if (node == kNoNode) throw std::bad_alloc();
  return node;
}
FrameId MergedTree::made(FrameId frame) const {
  if (frame == kNoFrame) throw std::bad_alloc();
  return frame;
}

}  // namespace leadline
