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

}  // namespace leadline
