// Metrics of a place itself, as activity events without a name: waiting, idleness, device memory.
#pragma once

#include <cstdint>

#include "base/ids.h"
#include "leadline/monitor.h"

namespace leadline::gpu {

constexpr std::uint32_t number(MetricKind kind) noexcept { return static_cast<std::uint32_t>(kind); }

// What a device has done, as it is told when it is over: the rest is in `of.gpu_activity`.
inline leadline_event activity_event(leadline_context context, std::int64_t time_ns) noexcept {
  leadline_event event{};
  event.domain = LEADLINE_DOMAIN_GPU_ACTIVITY;
  event.phase = LEADLINE_INSTANT;
  event.time_ns = time_ns;
  event.of.gpu_activity.context = context;
  return event;
}

inline void emit_measure(leadline_context context, MetricKind metric, std::int64_t value, std::int32_t device,
                         std::int64_t time_ns, std::int32_t device_type = 0) noexcept {
  const leadline_measure measure{number(metric), value};
  leadline_event event = activity_event(context, time_ns);
  leadline_gpu_activity_event& activity = event.of.gpu_activity;
  activity.device = device;
  activity.device_type = device_type;
  activity.stream = -1;
  activity.start_ns = time_ns;
  activity.measures = &measure;
  activity.measure_count = 1;
  leadline_monitor_emit(&event);
}

inline void count_loss(LossKind kind, std::uint64_t count, const char* detail) noexcept {
  if (count > 0) leadline_monitor_loss(static_cast<std::uint32_t>(kind), count, detail);
}

// Books what is known by now; where there is no memory for it, that is a loss.
template <typename Booking>
void settled(const Booking& book) noexcept {
  try {
    book();
  } catch (...) {
    count_loss(LossKind::kInternalError, 1, "GPU work could not be settled for lack of memory.");
  }
}

}  // namespace leadline::gpu
