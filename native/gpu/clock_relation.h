// How the clock of a vendor's records relates to the monitor's. The difference is measured, not assumed, each time
// records are read, so that a stepped or slewed clock costs at most the stated uncertainty.
#pragma once

#include <cstdint>
#include <limits>

#include "leadline/monitor.h"

namespace leadline::gpu {

struct ClockRelation {
  std::int64_t offset_ns = 0;       // add to the vendor's time
  std::int64_t uncertainty_ns = 0;  // half of the time the comparison took
  bool known = false;
};

// The tightest of a few comparisons (now, their time, now). `theirs(&ns)` reads the vendor's clock; false: not now.
template <class Clock>
ClockRelation measure_clock(Clock&& theirs) noexcept {
  constexpr int kTries = 5;
  ClockRelation best;
  std::int64_t narrowest = std::numeric_limits<std::int64_t>::max();
  for (int i = 0; i < kTries; ++i) {
    std::uint64_t their_ns = 0;
    const std::int64_t before = leadline_monitor_now();
    if (!theirs(&their_ns)) continue;
    const std::int64_t after = leadline_monitor_now();
    if (after - before >= narrowest) continue;
    narrowest = after - before;
    best = {before + (after - before) / 2 - static_cast<std::int64_t>(their_ns), (after - before + 1) / 2, true};
  }
  return best;
}

}  // namespace leadline::gpu
