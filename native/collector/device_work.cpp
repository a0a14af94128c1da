// Memory and device work: events that do not nest.
#include <algorithm>
#include <new>
#include <string>

#include "base/clock.h"
#include "collector/collector.h"

namespace leadline {

void Collector::on_memory(const leadline_memory_event& event, ThreadState& thread) noexcept {
  if (paused_.load(std::memory_order_relaxed)) [[unlikely]]
    return event.bytes < 0 ? ledger_.release_unmeasured(event.address) : ledger_.allocate_unmeasured(event.address);
  Lane* const own = this->lane(thread);
  if (own == nullptr) return;
  Lane& lane = *own;
  // Python gives memory back wherever an object dies: outside of operators nobody looks for the line.
  const bool at_owner = event.bytes < 0 && thread.operators_open == 0 && !window_.is_open();
  const bool sized = event.bytes != INT64_MIN;
  if (at_owner && (ledger_.release_at_owner(event.address) != MemoryLedger::kUnknownBytes || !sized)) return;
  // Below an operator Python seldom runs, see place(): its place is known most of the time.
  const Scope* const scope = thread.path.innermost();
  ThreadTree::Place* at = nullptr;
  if (scope != nullptr && scope->kind == ScopeKind::kOperator) at = innermost_place(lane, thread.path);
  if (at == nullptr) at = lane.tree->place(place(lane, thread));
  const NodeId node = at->id();
  const int16_t device = devices_.row(known_type(event.device_type), event.device);
  if (at_owner) return lane.tree->add(*at, {MetricKind::kFreeBytes, device}, -event.bytes);
  int64_t bytes = event.bytes;
  if (bytes >= 0) {
    ledger_.allocate(event.address, bytes, device, lane.tree->index(), node);
    lane.tree->add(*at, {MetricKind::kAllocBytes, device}, bytes);
  } else {
    const int64_t booked = ledger_.release(event.address, device, sized ? kNoThread : lane.tree->index(), node);
    bytes = booked >= 0 ? booked : sized ? -event.bytes : booked;
    if (bytes == MemoryLedger::kUnknownBytes) return;  // counted by the ledger
    if (booked == MemoryLedger::kUnmeasured) return;   // it was allocated in a pause
    // What the ledger books later it keeps for the writer.
    if (bytes >= 0) lane.tree->add(*at, {MetricKind::kFreeBytes, device}, bytes);
    bytes = bytes < 0 ? 0 : -bytes;
  }
  if (!window_.is_open()) [[likely]]
    return;
  TraceEvent row;
  row.start_ns = now_ns();
  row.duration_ns = 0;
  row.kind = EventKind::kAllocate;
  row.device = device;
  row.tree = row.thread = lane.tree->index();
  row.node = node;
  row.bytes = bytes;
  row.step = static_cast<int32_t>(steps_.load(std::memory_order_relaxed));
  lane.events.add(row);
}

bool Collector::is_place(leadline_context context) const noexcept {
  if (collector_of(context) != number_ || raw(tree_of(context)) >= trees_.size()) return false;
  return raw(node_of(context)) < trees_[tree_of(context)].node_count();
}

bool Collector::context_in_file(leadline_context context, std::string_view file) const noexcept {
  if (!is_place(context)) return false;
  const ThreadTree* tree = &trees_[tree_of(context)];
  NodeId node = node_of(context);
  while (node != tree->root()) {
    if (tree->is_graft(node)) {
      const ThreadTree::GraftTarget target = tree->graft_target(node);
      if (raw(target.thread) >= trees_.size()) return false;
      tree = &trees_[target.thread];
      node = target.node;
      continue;
    }
    if (tree->text(tree->frame_key(tree->frame_of(node)).file) == file) return true;
    node = tree->parent(node);
  }
  return false;
}

leadline_status Collector::path_to(leadline_context context, leadline_frame* frames, size_t* count) const noexcept {
  if (!is_place(context)) return LEADLINE_ERROR_INVALID;
  const size_t room = *count;
  size_t needed = 0;
  const ThreadTree* tree = &trees_[tree_of(context)];
  NodeId node = node_of(context);
  while (true) {
    if (tree->is_graft(node)) {
      const ThreadTree::GraftTarget target = tree->graft_target(node);
      if (raw(target.thread) >= trees_.size()) return LEADLINE_ERROR_INVALID;
      tree = &trees_[target.thread];
      node = target.node;
      continue;
    }
    const FrameKey& key = tree->frame_key(tree->frame_of(node));
    if (needed < room) {
      frames[needed] = {static_cast<uint8_t>(key.kind), key.line, tree->text(key.name).data(),
                        tree->text(key.file).data(), key.address};
    }
    ++needed;
    if (node == tree->root()) break;
    node = tree->parent(node);
  }
  std::reverse(frames, frames + std::min(room, needed));
  *count = needed;
  return needed > room ? LEADLINE_ERROR_FULL : LEADLINE_OK;
}

// The slow way: everything is looked up by its text.
NodeId Collector::find_activity_node(const leadline_gpu_activity_event& event, Lane& lane) noexcept {
  ThreadTree& tree = *lane.tree;
  NodeId parent = is_place(event.context) ? lane.graft(tree_of(event.context), node_of(event.context))
                                          : tree.child(tree.root(), lane.phase("launched before measuring began"));
  std::string detail = event.detail == nullptr ? "" : event.detail;
  if (event.via_kind == LEADLINE_VIA_BEFORE) {
    const std::string graph = "{\"graph\": " + std::to_string(event.graph_node >> 32) + "}";
    parent = tree.child(parent, lane.plain(FrameKind::kPhase, "captured before profiling", {}, 0, graph));
  } else if (is_place(event.via)) {
    parent =
        tree.child(parent, lane.phase(event.via_kind == LEADLINE_VIA_INSTANTIATE ? "instantiated at" : "captured at"));
    parent = lane.copy_path(trees_[tree_of(event.via)], node_of(event.via), parent);
  }
  if (event.name == nullptr) return parent;
  if (event.via_kind != LEADLINE_VIA_CAPTURE) {
    // Without the path of its capture the number is all that tells a node from another one with the same kernel.
    const std::string node = "\"node\": " + std::to_string(static_cast<uint32_t>(event.graph_node));
    detail = detail.size() > 2 ? "{" + node + ", " + detail.substr(1) : "{" + node + "}";
  }
  return tree.child(parent, lane.plain(static_cast<FrameKind>(event.frame_kind), event.name,
                                       event.file == nullptr ? "" : event.file, event.line, detail));
}

NodeId Collector::activity_node(const leadline_gpu_activity_event& event, Lane& lane) noexcept {
  // Measures of a place itself, as every thread that calls the device's library books them: there is nothing to look up
  // by its text.
  if (event.name == nullptr && event.via == 0 && event.via_kind != LEADLINE_VIA_BEFORE && is_place(event.context)) {
    return lane.graft(tree_of(event.context), node_of(event.context));
  }
  PlaceCache::Key key{event.context, event.via, event.frame, 0, event.via_kind};
  if (event.via_kind == LEADLINE_VIA_BEFORE) key.node = event.graph_node;
  if (event.via_kind == LEADLINE_VIA_INSTANTIATE) key.node = static_cast<uint32_t>(event.graph_node);
  const bool numbered = event.name == nullptr || event.frame != 0;
  if (numbered) {
    if (const NodeId known = lane.places.find(key); known != kNoNode) [[likely]]
      return known;
  }
  try {
    const NodeId node = find_activity_node(event, lane);
    if (numbered) lane.places.put(key, node);
    return node;
  } catch (const std::bad_alloc&) {
    losses().count(LossKind::kInternalError, 1, "no memory for the place of device work, which is under its thread");
    return lane.tree->root();
  }
}

// Books one place's part of a piece of work and answers with its node.
NodeId Collector::book_activity(const leadline_gpu_activity_event& event, const Part& part, Lane& lane) noexcept {
  const NodeId node = activity_node(event, lane);
  const int16_t device = devices_.row(device_type(event.device_type), event.device);
  const auto stream = static_cast<int32_t>(event.stream);
  const auto add = [&](NodeId at, const leadline_measure* measures, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
      if (measures[i].metric >= kMetricKindCount) continue;
      lane.tree->add(at, static_cast<MetricKind>(measures[i].metric), device, stream, part.of(measures[i].value));
    }
  };
  const bool is_work = event.event_kind != static_cast<uint8_t>(EventKind::kScratch) &&
                       event.event_kind != static_cast<uint8_t>(EventKind::kOverhead);
  if (event.name != nullptr && event.duration_ns >= 0 && is_work) {
    lane.tree->add(node, MetricKind::kGpuTime, device, stream, part.of(event.duration_ns));
  }
  add(node, event.measures, event.measure_count);
  const auto text = [](const char* given) { return given == nullptr ? "" : given; };
  for (uint32_t i = 0; event.name != nullptr && i < event.child_count; ++i) {
    const leadline_activity_child& child = event.children[i];
    const FrameId frame = lane.plain(static_cast<FrameKind>(child.frame_kind), text(child.name), text(child.file),
                                     child.line, text(child.detail), child.address);
    add(lane.tree->child(node, frame), child.measures, child.measure_count);
  }
  return node;
}

// As if each place had launched its share.
NodeId Collector::book_shares(const leadline_gpu_activity_event& event, Lane& lane) noexcept {
  Part part{0, 0, 0};
  for (uint32_t i = 0; i < event.share_count; ++i) part.whole += event.shares[i].millionths;
  const bool equal = part.whole == 0;  // nobody knows
  if (equal) part.whole = event.share_count;
  NodeId first = kNoNode;
  leadline_gpu_activity_event one = event;
  bool unknown = false;
  for (uint32_t i = 0; i < event.share_count; ++i) {
    one.context = event.shares[i].context;
    unknown = unknown || !is_place(one.context);
    part.from = part.to;
    part.to += equal ? 1 : event.shares[i].millionths;
    if (part.from == part.to) continue;
    const NodeId node = book_activity(one, part, lane);
    if (first == kNoNode) first = node;
  }
  if (unknown) losses().count(LossKind::kGpuRecordUnattributed, 1);
  return first;
}

void Collector::on_activity(const leadline_gpu_activity_event& event, Lane& lane) noexcept {
  NodeId node = kNoNode;
  if (event.share_count != 0) [[unlikely]] {
    node = book_shares(event, lane);
  } else {
    if (!is_place(event.context)) losses().count(LossKind::kGpuRecordUnattributed, 1);
    node = book_activity(event, Part{}, lane);
  }
  if (event.name == nullptr || event.duration_ns < 0 || !window_.covers(event.start_ns)) return;
  TraceEvent row;
  row.start_ns = event.start_ns;
  row.duration_ns = event.duration_ns;
  row.kind = static_cast<EventKind>(event.event_kind);
  row.device = devices_.row(device_type(event.device_type), event.device);
  row.stream = static_cast<int32_t>(event.stream);
  row.tree = lane.tree->index();
  row.node = node;
  row.correlation = event.correlation;
  row.bytes = event.bytes;
  row.graph_node = event.graph_node;
  row.step = static_cast<int32_t>(step_at(event.start_ns));
  lane.events.add(row);
}

}  // namespace leadline
