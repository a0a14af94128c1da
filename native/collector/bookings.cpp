// What another source has measured, at the path that it names.
#include <new>

#include "collector/collector.h"

namespace leadline {
namespace {

MetricValues values_of(const leadline_total& total) noexcept {
  MetricValues values{total.count, total.sum, total.min, total.max, total.sum_squares};
  const auto sum = static_cast<double>(total.sum);
  if (total.sum_squares == 0) values.sum_squares = sum * sum / static_cast<double>(total.count);
  return values;
}

}  // namespace

leadline_status Collector::on_booking(const leadline_booking& booking, ThreadState& thread,
                                      leadline_context* place) noexcept {
  const bool at_thread = booking.below == LEADLINE_PLACE_THREAD;
  if (!at_thread && !is_place(booking.below)) return LEADLINE_ERROR_INVALID;
  Lane* const own = lane(thread);
  if (own == nullptr) return LEADLINE_ERROR_NO_MEMORY;
  ThreadTree& tree = *own->tree;
  const NodeId below = at_thread ? tree.root() : own->graft(tree_of(booking.below), node_of(booking.below));
  NodeId node = below;
  for (uint32_t i = 0; i < booking.frame_count; ++i) node = tree.child(node, own->frame(booking.frames[i]));
  const int16_t device = devices_.row(device_type(booking.device_type), booking.device);
  for (uint32_t i = 0; i < booking.total_count; ++i) {
    const leadline_total& total = booking.totals[i];
    tree.add(node, {static_cast<MetricKind>(total.metric), device, booking.stream}, values_of(total));
  }
  // A graft is no place of its own.
  if (place != nullptr) *place = node == below && !at_thread ? booking.below : own->token(node);
  return LEADLINE_OK;
}

bool Collector::on_timed(const TimedOperators& operators, ThreadState& thread) noexcept {
  if (!is_place(operators.place) || !is_place(operators.thread)) return false;
  Lane* const own = lane(thread);
  if (own == nullptr) return false;
  TraceEvent row;
  row.kind = EventKind::kOperator;
  row.tree = tree_of(operators.place);
  row.node = node_of(operators.place);
  row.thread = tree_of(operators.thread);
  row.correlation = operators.correlation;
  for (size_t i = 0; i < operators.begins_ns.size() && i < operators.durations_ns.size(); ++i) {
    row.start_ns = operators.begins_ns[i];
    row.duration_ns = operators.durations_ns[i];
    if (row.duration_ns < 0 || !window_.opened_before(row.start_ns)) continue;
    row.step = static_cast<int32_t>(step_at(row.start_ns));
    own->events.add(row, true);
  }
  return true;
}

}  // namespace leadline
