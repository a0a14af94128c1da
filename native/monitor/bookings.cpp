// What another source has measured, handed to those who listen.
#include <cmath>

#include "base/schema_generated.h"
#include "monitor/busy.h"
#include "monitor/monitor.h"

namespace leadline {
namespace {

bool makes_sense(const leadline_path_frame& frame) noexcept {
  const auto kind = static_cast<FrameKind>(frame.kind);
  return frame.kind < kFrameKindCount && frame.name != nullptr && kind != FrameKind::kRoot &&
         kind != FrameKind::kProcess && kind != FrameKind::kThread;
}

// Values between the smallest and the largest one have a sum between these many times them.
bool makes_sense(const leadline_total& total) noexcept {
  __extension__ using Wide = __int128;
  const auto count = static_cast<Wide>(total.count);
  return total.metric < kMetricKindCount && total.count != 0 && total.min <= total.max &&
         count * total.min <= total.sum && total.sum <= count * total.max && std::isfinite(total.sum_squares) &&
         total.sum_squares >= 0;
}

bool makes_sense(const leadline_booking& booking) noexcept {
  if ((booking.frame_count != 0 && booking.frames == nullptr) ||
      (booking.total_count != 0 && booking.totals == nullptr))
    return false;
  for (uint32_t i = 0; i < booking.frame_count; ++i) {
    if (!makes_sense(booking.frames[i])) return false;
  }
  for (uint32_t i = 0; i < booking.total_count; ++i) {
    if (!makes_sense(booking.totals[i])) return false;
  }
  return booking.below != 0;
}

}  // namespace

leadline_status Monitor::book(const leadline_booking& booking, leadline_context* place) noexcept {
  if (place != nullptr) *place = 0;
  if (!makes_sense(booking)) return LEADLINE_ERROR_INVALID;
  if (active(LEADLINE_DOMAIN_BOOKING) == 0) return LEADLINE_ERROR_UNAVAILABLE;
  ThreadState* state = thread();
  if (state == nullptr) return LEADLINE_ERROR_NO_MEMORY;
  const Busy busy(*this, *state);
  if (!busy) return LEADLINE_ERROR_UNAVAILABLE;
  if (Subscriber* const there = core(LEADLINE_DOMAIN_BOOKING)) {
    const leadline_status status = there->on_booking(booking, *state, place);
    if (status != LEADLINE_OK) return status;
  }
  leadline_event event = leadline_event_of(LEADLINE_DOMAIN_BOOKING, LEADLINE_INSTANT);
  event.of.booking = booking;
  deliver(event, nullptr, *state);
  return LEADLINE_OK;
}

}  // namespace leadline
