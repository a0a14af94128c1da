// Work with several places, and what lies below it.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "base/clock.h"
#include "testing/recorded_program.h"

using namespace leadline;
using namespace leadline::testing;

namespace {

leadline_event kernel(int64_t duration_ns) {
  leadline_event event{};
  event.domain = LEADLINE_DOMAIN_GPU_ACTIVITY;
  event.phase = LEADLINE_INSTANT;
  event.of.gpu_activity.frame_kind = static_cast<uint8_t>(FrameKind::kKernel);
  event.of.gpu_activity.event_kind = static_cast<uint8_t>(EventKind::kKernel);
  event.of.gpu_activity.name = "fused";
  event.of.gpu_activity.start_ns = now_ns();
  event.of.gpu_activity.duration_ns = duration_ns;
  return event;
}

}  // namespace

TEST_CASE("A piece of work with several contexts is booked by shares that add up, as one event") {
  RecordedProgram program;
  program.collector.window().open(100);
  const leadline_share shares[] = {
      {place_of("a"), 333'333}, {place_of("b"), 333'333}, {place_of("c"), 333'334}, {place_of("d"), 0}};
  const leadline_measure moved{static_cast<uint32_t>(MetricKind::kSyncTime), 7};
  leadline_event event = kernel(1'000'000'000'000'001);
  event.of.gpu_activity.measures = &moved;
  event.of.gpu_activity.measure_count = 1;
  event.of.gpu_activity.shares = shares;
  event.of.gpu_activity.share_count = 4;
  leadline_monitor_emit(&event);
  program.take();
  int64_t time_ns = 0;
  int64_t synchronized = 0;
  for (const std::string place : {"main/a/fused", "main/b/fused", "main/c/fused", "main/d/fused"}) {
    time_ns += program.measured(place, MetricKind::kGpuTime).sum;
    synchronized += program.measured(place, MetricKind::kSyncTime).sum;
    CHECK(program.measured(place, MetricKind::kGpuTime).count == (place == "main/d/fused" ? 0 : 1));
  }
  CHECK(time_ns == 1'000'000'000'000'001);
  CHECK(synchronized == 7);
  CHECK(program.measured("main/b/fused", MetricKind::kGpuTime).sum / 1'000'000'000 == 333'333);
  REQUIRE(program.shown.events.has_value());
  const auto kinds = program.kinds_of_events();
  CHECK(std::count(kinds.begin(), kinds.end(), static_cast<uint8_t>(EventKind::kKernel)) == 1);
  CHECK(losses().total(LossKind::kGpuRecordUnattributed) == 0);
}

TEST_CASE("What was measured inside a kernel hangs below it, also where the kernel is shared") {
  RecordedProgram program;
  const leadline_share shares[] = {{place_of("a"), 1}, {place_of("b"), 1}};
  const leadline_measure samples[] = {{static_cast<uint32_t>(MetricKind::kGpuTime), 9}, {9999, 1}};
  const leadline_activity_child children[] = {
      {static_cast<uint8_t>(FrameKind::kInstruction), "FFMA", nullptr, "k.cu", 12, 0x40, samples, 2},
      {static_cast<uint8_t>(FrameKind::kInstruction), "FFMA", nullptr, "k.cu", 12, 0x50, samples, 1}};
  leadline_event event = kernel(100);
  event.of.gpu_activity.shares = shares;
  event.of.gpu_activity.share_count = 2;
  event.of.gpu_activity.children = children;
  event.of.gpu_activity.child_count = 2;
  leadline_monitor_emit(&event);
  program.take();
  CHECK(program.measured("main/a/fused", MetricKind::kGpuTime).sum == 50);
  const auto rows = program.paths();
  CHECK(std::count(rows.begin(), rows.end(), "main/a/fused/FFMA") == 2);  // two addresses
  CHECK(std::count(rows.begin(), rows.end(), "main/b/fused/FFMA") == 2);
  CHECK(program.measured("main/a/fused/FFMA", MetricKind::kGpuTime).sum == 8);
  CHECK(program.measured("main/b/fused/FFMA", MetricKind::kGpuTime).sum == 10);
}

TEST_CASE("What the device's library did on the host is an event and no time of the device") {
  RecordedProgram program;
  program.collector.window().open(100);
  const leadline_measure loading{static_cast<uint32_t>(MetricKind::kCallTime), 100};
  leadline_event event = kernel(100);
  event.of.gpu_activity.frame_kind = static_cast<uint8_t>(FrameKind::kApi);
  event.of.gpu_activity.event_kind = static_cast<uint8_t>(EventKind::kOverhead);
  event.of.gpu_activity.context = place_of("a");
  event.of.gpu_activity.name = "loading";
  event.of.gpu_activity.measures = &loading;
  event.of.gpu_activity.measure_count = 1;
  leadline_monitor_emit(&event);
  program.take();
  CHECK(program.measured("main/a/loading", MetricKind::kGpuTime).count == 0);
  CHECK(program.measured("main/a/loading", MetricKind::kCallTime).sum == 100);
  REQUIRE(program.shown.events.has_value());
  const auto kinds = program.kinds_of_events();
  CHECK(std::count(kinds.begin(), kinds.end(), static_cast<uint8_t>(EventKind::kOverhead)) == 1);
}
