// The C functions of leadline/monitor.h: nothing but calls into Monitor.
#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/clock.h"
#include "base/losses.h"
#include "monitor/monitor.h"

using leadline::Monitor;

extern "C" {

leadline_status leadline_monitor_register(uint32_t domains, leadline_callback callback, void* user,
                                          leadline_subscription* out) {
  return Monitor::instance().subscribe(domains, callback, user, out);
}

leadline_status leadline_monitor_unregister(leadline_subscription subscription) {
  return Monitor::instance().unsubscribe(subscription);
}

void leadline_monitor_finalize(void) { Monitor::instance().finalize(); }

void leadline_monitor_emit(const leadline_event* event) {
  if (event == nullptr) return;
  if (event->domain == LEADLINE_DOMAIN_BOOKING) return;  // leadline_monitor_book() says what became of it
  if (event->struct_size == 0 || event->struct_size == sizeof *event) return Monitor::instance().emit(*event);
  // Of another header: what both know.
  leadline_event known{};
  std::memcpy(&known, event, std::min<size_t>(event->struct_size, sizeof known));
  Monitor::instance().emit(known);
}

uint32_t leadline_monitor_active(uint32_t domains) { return Monitor::instance().active(domains); }

leadline_context leadline_monitor_context(void) { return Monitor::instance().context(); }

leadline_context leadline_monitor_published(void) { return Monitor::instance().published(); }

leadline_status leadline_monitor_threads(leadline_thread* threads, size_t* count) {
  return Monitor::instance().threads(threads, count);
}

int leadline_monitor_context_in_file(leadline_context context, const char* file) {
  return file != nullptr && Monitor::instance().context_in_file(context, file) ? 1 : 0;
}

leadline_status leadline_monitor_path(leadline_context context, leadline_frame* frames, size_t* count) {
  return Monitor::instance().path_to(context, frames, count);
}

void leadline_monitor_loss(uint32_t kind, uint64_t count, const char* detail) {
  if (kind >= leadline::kLossKindCount) return;
  leadline::losses().count(static_cast<leadline::LossKind>(kind), count, detail == nullptr ? "" : detail);
}

uint64_t leadline_monitor_new_frame(void) {
  static std::atomic<uint64_t> frames{1};
  return frames.fetch_add(1, std::memory_order_relaxed);
}

void leadline_monitor_measure(uint32_t metric, int64_t value, int64_t time_ns) {
  leadline_event event{};
  leadline_gpu_activity_event& activity = event.of.gpu_activity;
  activity.context = Monitor::instance().context();
  if (activity.context == 0) return;
  const leadline_measure measure{metric, value};
  event.domain = LEADLINE_DOMAIN_GPU_ACTIVITY;
  event.phase = LEADLINE_INSTANT;
  event.time_ns = time_ns != 0 ? time_ns : leadline::now_ns();
  activity.device = -1;
  activity.stream = -1;
  activity.start_ns = event.time_ns;
  activity.measures = &measure;
  activity.measure_count = 1;
  Monitor::instance().emit(event);
}

leadline_status leadline_monitor_book(const leadline_booking* booking, leadline_context* place) {
  if (booking == nullptr) return LEADLINE_ERROR_INVALID;
  if (booking->struct_size == 0) return Monitor::instance().book(*booking, place);
  leadline_booking known = leadline_booking_of(0);
  std::memcpy(&known, booking, std::min<size_t>(booking->struct_size, sizeof known));
  return Monitor::instance().book(known, place);
}

int64_t leadline_monitor_now(void) { return leadline::now_ns(); }

leadline_status leadline_callpath_get(uint32_t sources, leadline_frame* frames, size_t* count) {
  return Monitor::instance().call_path(sources, frames, count);
}

}  // extern "C"
