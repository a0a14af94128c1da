// How CUPTI's clock relates to the monitor's. CUPTI gives CLOCK_REALTIME nanoseconds; the difference is measured, not
// assumed, each time records are read, so that a stepped or slewed clock costs at most the stated uncertainty.
#pragma once

#include <cstdint>
#include <limits>

#include "leadline/monitor.h"
#include "providers/nvidia/cupti_library.h"

namespace leadline::nvidia {

struct ClockRelation {
  std::int64_t offset_ns = 0;       // add to CUPTI's time
  std::int64_t uncertainty_ns = 0;  // half of the time the comparison took
  bool known = false;
};

// The tightest of a few comparisons (now, CUPTI's time, now).
inline ClockRelation measure_clock(const CuptiFunctions& cupti) noexcept {
  constexpr int kTries = 5;
  ClockRelation best;
  std::int64_t narrowest = std::numeric_limits<std::int64_t>::max();
  for (int i = 0; i < kTries; ++i) {
    std::uint64_t theirs = 0;
    const std::int64_t before = leadline_monitor_now();
    if (cupti.get_timestamp(&theirs) != cupti::kSuccess) continue;
    const std::int64_t after = leadline_monitor_now();
    if (after - before >= narrowest) continue;
    narrowest = after - before;
    best = {before + (after - before) / 2 - static_cast<std::int64_t>(theirs), (after - before + 1) / 2, true};
  }
  return best;
}

}  // namespace leadline::nvidia
