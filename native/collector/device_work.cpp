// Memory and device work: events that do not nest.
#include "base/clock.h"
#include "collector/collector.h"

namespace leadline {

void Collector::on_memory(const leadline_memory_event& event, ThreadState& thread, Lane& lane) noexcept {
  const NodeId node = place(lane, thread);
  const int16_t device = event.device_type == 0 ? kCpuDevice : devices_.row(event.device);
  int64_t bytes = event.bytes;
  if (bytes >= 0) {
    ledger_.allocate(event.address, bytes, device, lane.tree->index(), node);
    lane.tree->add(node, MetricKind::kAllocBytes, device, kNoStream, bytes);
  } else {
    const int64_t booked = ledger_.release(event.address);
    bytes = booked >= 0 ? booked : (event.bytes == INT64_MIN ? -1 : -event.bytes);
    if (bytes < 0) return;  // counted by the ledger
    lane.tree->add(node, MetricKind::kFreeBytes, device, kNoStream, bytes);
    bytes = -bytes;
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

void Collector::on_activity(const leadline_gpu_activity_event& event, Lane& lane) noexcept {
  const auto valid = [this](leadline_context context) {
    const uint64_t thread = context >> 32;
    return thread != 0 && thread - 1 < trees_.size();
  };
  const auto tree_of = [](leadline_context context) { return ThreadIndex{static_cast<uint32_t>((context >> 32) - 1)}; };
  const auto node_of = [](leadline_context context) { return NodeId{static_cast<uint32_t>(context)}; };
  NodeId parent{};
  if (valid(event.context)) {
    parent = lane.graft(tree_of(event.context), node_of(event.context));
  } else {
    losses().count(LossKind::kGpuRecordUnattributed, 1);
    parent = lane.tree->child(lane.tree->root(), lane.phase("launched before measuring began"));
  }
  if (valid(event.via)) {
    parent = lane.tree->child(parent, lane.phase("captured at"));
    parent = lane.copy_path(trees_[tree_of(event.via)], node_of(event.via), parent);
  }
  const int16_t device = event.device < 0 ? kCpuDevice : devices_.row(event.device);
  const auto stream = static_cast<int32_t>(event.stream);
  const auto add_measures = [&](NodeId to) {
    for (uint32_t i = 0; i < event.measure_count; ++i) {
      const leadline_measure& measure = event.measures[i];
      if (measure.metric >= kMetricKindCount) continue;
      lane.tree->add(to, static_cast<MetricKind>(measure.metric), device, stream, measure.value);
    }
  };
  if (event.name == nullptr) return add_measures(parent);
  const auto kind = static_cast<FrameKind>(event.frame_kind);
  const FrameId frame = lane.plain(kind, event.name, event.file == nullptr ? "" : event.file, event.line,
                                   event.detail == nullptr ? "" : event.detail);
  const NodeId node = lane.tree->child(parent, frame);
  lane.tree->add(node, MetricKind::kGpuTime, device, stream, event.duration_ns);
  add_measures(node);
  if (!window_.covers(event.start_ns)) return;
  TraceEvent row;
  row.start_ns = event.start_ns;
  row.duration_ns = event.duration_ns;
  row.kind = static_cast<EventKind>(event.event_kind);
  row.device = device;
  row.stream = stream;
  row.tree = lane.tree->index();
  row.node = node;
  row.correlation = event.correlation;
  row.bytes = event.bytes;
  row.graph_node = event.graph_node;
  row.step = static_cast<int32_t>(step_at(event.start_ns));
  lane.events.add(row);
}

}  // namespace leadline
