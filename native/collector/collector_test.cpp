#include "collector/collector.h"

#include "base/clock.h"
#include "testing/recorded_program.h"

using namespace leadline;
using namespace leadline::testing;

TEST_CASE("Running time of regions and phases is the thread's CPU time, each nanosecond once") {
  FakeClock clock(1'000);
  RecordedProgram program;
  const auto work = [&](int64_t ns) {
    clock.advance(2 * ns);  // half of the time it waits
    clock.advance_cpu(ns);
  };
  int outer = 0;
  int inner = 0;
  int op = 0;
  work(1'000'000);  // nobody's
  begin_region("outer", &outer);
  work(10);
  Monitor::instance().begin_operator(operator_named("aten::mm"), &op);
  work(20);
  begin_region("inner", &inner, LEADLINE_REGION_PHASE);
  work(300);
  end_region(&inner, LEADLINE_REGION_PHASE);
  work(4'000);
  Monitor::instance().end_operator(&op);
  work(50'000);
  end_region(&outer);
  work(1'000'000);
  program.take();
  CHECK(program.measured("main/outer", MetricKind::kRunningTime).sum == 54'030);
  CHECK(program.measured("main/outer", MetricKind::kRunningTime).count == 1);
  CHECK(program.measured("main/outer/aten::mm/inner", MetricKind::kRunningTime).sum == 300);
  CHECK(program.measured("main/outer/aten::mm", MetricKind::kRunningTime).count == 0);
  CHECK(program.measured("main/outer/aten::mm/inner", MetricKind::kCallTime).sum == 600);
}

TEST_CASE("A known wait is booked at the place where the thread is") {
  RecordedProgram program;
  int region = 0;
  begin_region("collect", &region);
  measure_at(leadline_monitor_context(), MetricKind::kWaitTime, 700);
  measure_at(leadline_monitor_context(), MetricKind::kWaitTime, 50);
  end_region(&region);
  program.take();
  CHECK(program.measured("main/collect", MetricKind::kWaitTime).sum == 750);
  CHECK(program.measured("main/collect", MetricKind::kWaitTime).count == 2);
  CHECK(losses().total(LossKind::kGpuRecordUnattributed) == 0);
}

TEST_CASE("Data loading inside data loading is time of the thread once") {
  FakeClock clock(1'000);
  RecordedProgram program;
  int outer = 0;
  int inner = 0;
  begin_region("data loading", &outer, LEADLINE_REGION_PHASE);
  clock.advance(10);
  begin_region("data loading", &inner, LEADLINE_REGION_PHASE);
  clock.advance(100);
  end_region(&inner, LEADLINE_REGION_PHASE);
  clock.advance(5);
  end_region(&outer, LEADLINE_REGION_PHASE);
  program.take();
  REQUIRE(program.shown.threads.data_ns.size() == 1);
  CHECK(program.shown.threads.data_ns[0] == 115);
}

TEST_CASE("Regions that overlap count every nanosecond once") {
  FakeClock clock(1'000);
  RecordedProgram program;
  int a = 0;
  int b = 0;
  int op = 0;
  begin_region("a", &a);
  clock.advance(1);
  begin_region("b", &b, LEADLINE_REGION_PHASE);
  clock.advance(10);
  clock.advance_cpu(10);
  Monitor::instance().begin_operator(operator_named("aten::mm"), &op);
  clock.advance(100);
  end_region(&a);  // inside the operator, with b still open
  clock.advance(1'000);
  Monitor::instance().end_operator(&op);
  clock.advance(10'000);
  clock.advance_cpu(20);
  end_region(&b, LEADLINE_REGION_PHASE);
  clock.advance(100'000);
  program.take();
  CHECK(program.measured("main/a", MetricKind::kTime).sum == 1);
  CHECK(program.measured("main/a", MetricKind::kCallTime).sum == 111);
  CHECK(program.measured("main/a/b", MetricKind::kTime).sum == 10);
  CHECK(program.measured("main/a/b", MetricKind::kCallTime).sum == 110);
  CHECK(program.measured("main/a/b", MetricKind::kCallTime).count == 1);  // it was here once
  CHECK(program.measured("main/a/b/aten::mm", MetricKind::kTime).sum == 100);
  CHECK(program.measured("main/b", MetricKind::kTime).sum == 10'000);
  CHECK(program.measured("main/b", MetricKind::kCallTime).sum == 11'000);
  CHECK(program.measured("main/b", MetricKind::kCallTime).count == 1);
  CHECK(program.measured("main/b/aten::mm", MetricKind::kTime).sum == 1'000);
  CHECK(program.measured("main/b/aten::mm", MetricKind::kTime).count == 1);
  CHECK(program.measured("main/a/b", MetricKind::kRunningTime).sum == 10);
  CHECK(program.measured("main/b", MetricKind::kRunningTime).sum == 20);
  CHECK(program.shown.threads.operator_ns[0] == 1'100);
  CHECK(losses().total(LossKind::kOperatorEndUnmatched) == 0);
}

TEST_CASE("An operator whose end was missed counts its time once, and is told as a loss") {
  FakeClock clock(1'000);
  RecordedProgram program;
  int outer = 0;
  int lost = 0;
  Monitor::instance().begin_operator(operator_named("outer"), &outer);
  clock.advance(1);
  Monitor::instance().begin_operator(operator_named("lost"), &lost);
  clock.advance(10);
  Monitor::instance().end_operator(&outer);
  program.take();
  CHECK(program.measured("main/outer", MetricKind::kTime).sum == 1);
  CHECK(program.measured("main/outer", MetricKind::kCallTime).sum == 11);
  CHECK(program.measured("main/outer/lost", MetricKind::kTime).sum == 10);
  CHECK(losses().total(LossKind::kOperatorEndUnmatched) == 1);
}
