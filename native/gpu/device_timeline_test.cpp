// Busy, idle and overlap of a device.
#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <vector>

#include "gpu/device_timeline.h"

namespace leadline::gpu {
namespace {

// Totals by looking at every nanosecond. Idle time ends with the last work or at a pause.
DeviceTotals slow_totals(const std::vector<Interval>& work) {
  DeviceTotals t;
  std::int64_t from = std::numeric_limits<std::int64_t>::max();
  std::int64_t to = 0;
  for (const Interval& i : work) {
    const bool measured = i.work_class != WorkClass::kUnmeasured;
    if (measured) from = std::min(from, i.start_ns);
    to = std::max(to, measured ? i.end_ns : i.start_ns);
  }
  for (std::int64_t now = from; now < to; ++now) {
    bool on[kWorkClasses] = {};
    for (const Interval& i : work) {
      if (i.start_ns <= now && now < i.end_ns) on[static_cast<int>(i.work_class)] = true;
    }
    t.compute_ns += on[0];
    t.copy_ns += on[1];
    t.communication_ns += on[2];
    t.copy_under_compute_ns += on[0] && on[1];
    t.communication_under_compute_ns += on[0] && on[2];
    if (on[0] || on[1] || on[2]) {
      ++t.busy_ns;
    } else if (!on[3]) {
      ++t.idle_ns;
    }
  }
  return t;
}

}  // namespace

TEST_CASE("busy, idle and overlap agree with counting every nanosecond, in any order of arrival and around pauses") {
  std::mt19937 random(11);
  for (int round = 0; round < 20; ++round) {
    std::vector<Interval> work;
    for (int i = 0; i < 60; ++i) {
      const auto start = static_cast<std::int64_t>(1000 + random() % 2000);
      work.push_back({start, start + 1 + static_cast<std::int64_t>(random() % 60),
                      static_cast<WorkClass>(random() % kWorkClasses), 1, 0});
    }
    std::int64_t gaps = 0;
    DeviceTimeline timeline([&](std::int64_t from, std::int64_t to, const Interval&) { gaps += to - from; });
    for (const Interval& i : work) timeline.add(i);
    timeline.sweep_before(1500);
    timeline.finish();
    const DeviceTotals got = timeline.totals();
    const DeviceTotals want = slow_totals(work);
    CHECK(got.busy_ns == want.busy_ns);
    CHECK(got.idle_ns == want.idle_ns);
    CHECK(gaps == want.idle_ns);
    CHECK(got.compute_ns == want.compute_ns);
    CHECK(got.copy_ns == want.copy_ns);
    CHECK(got.communication_ns == want.communication_ns);
    CHECK(got.copy_under_compute_ns == want.copy_under_compute_ns);
    CHECK(got.communication_under_compute_ns == want.communication_under_compute_ns);
    CHECK(got.late == 0);
  }
}

TEST_CASE("work that comes after its time was swept is counted as late and not twice") {
  DeviceTimeline timeline(nullptr);
  timeline.add({100, 200, WorkClass::kCompute, 1, 0});
  timeline.add({300, 400, WorkClass::kCompute, 1, 0});
  timeline.sweep_before(350);
  timeline.add({120, 180, WorkClass::kCompute, 1, 0});
  timeline.finish();
  CHECK(timeline.totals().late == 1);
  CHECK(timeline.totals().busy_ns == 200);
}

TEST_CASE("idle time up to a pause belongs to whoever fed the device before it") {
  std::vector<std::int64_t> gaps;
  DeviceTimeline timeline([&](std::int64_t from, std::int64_t to, const Interval& next) {
    gaps.insert(gaps.end(), {from, to, static_cast<std::int64_t>(next.context)});
  });
  timeline.add({100, 200, WorkClass::kCompute, 1, 0});
  timeline.add({300, 900, WorkClass::kUnmeasured, 0, 0});
  timeline.add({1000, 1100, WorkClass::kCompute, 2, 0});
  timeline.finish();
  CHECK(gaps == std::vector<std::int64_t>{200, 300, 1, 900, 1000, 2});
  CHECK(timeline.totals().idle_ns == 200);
  CHECK(timeline.totals().busy_ns == 200);
}

}  // namespace leadline::gpu
