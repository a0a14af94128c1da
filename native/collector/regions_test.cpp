// What regions and phases tell beside their wall time, and where those stand that do not nest.
#include <algorithm>
#include <thread>

#include "base/clock.h"
#include "stack/fake_python.h"
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

TEST_CASE("A region that another thread asked for hangs where it was asked for") {
  RecordedProgram program;
  int op = 0;
  Monitor::instance().begin_operator(operator_named("launch"), &op);
  const leadline_context asked_at = leadline_monitor_context();
  Monitor::instance().end_operator(&op);
  std::thread([asked_at] {
    leadline_event event{};
    event.domain = LEADLINE_DOMAIN_REGION;
    event.phase = LEADLINE_BEGIN;
    event.token = &event;
    event.of.region.name = "work";
    event.of.region.asked_at = asked_at;
    Monitor::instance().emit(event);
    end_region(&event);
  }).join();
  program.take();
  CHECK(program.measured("main/launch/on another thread/work", MetricKind::kCallTime).count == 1);
}

TEST_CASE("Data loading inside data loading is time of the thread once") {
  FakeClock clock(1'000);
  RecordedProgram program;
  int outer = 0;
  int inner = 0;
  begin_region("waiting for data", &outer, LEADLINE_REGION_PHASE, LEADLINE_REGION_FLAG_DATA_WAIT);
  clock.advance(10);
  begin_region("reading", &inner, LEADLINE_REGION_PHASE, LEADLINE_REGION_FLAG_DATA_WAIT);
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
  CHECK(program.measured("main/a/b", MetricKind::kTime).count == 1);      // one stay
  CHECK(program.measured("main/a/b", MetricKind::kCallTime).count == 0);  // of a call that ended elsewhere
  CHECK(program.measured("main/a/b/aten::mm", MetricKind::kTime).sum == 100);
  CHECK(program.measured("main/b", MetricKind::kTime).sum == 10'000);
  CHECK(program.measured("main/b", MetricKind::kTime).count == 1);
  CHECK(program.measured("main/b", MetricKind::kCallTime).sum == 11'110);
  CHECK(program.measured("main/b", MetricKind::kCallTime).count == 1);
  CHECK(program.measured("main/b/aten::mm", MetricKind::kTime).sum == 1'000);
  CHECK(program.measured("main/b/aten::mm", MetricKind::kTime).count == 1);
  CHECK(program.measured("main/a/b", MetricKind::kRunningTime).sum == 10);
  CHECK(program.measured("main/b", MetricKind::kRunningTime).sum == 20);
  CHECK(program.shown.threads.operator_ns[0] == 1'100);
  CHECK(losses().total(LossKind::kOperatorEndUnmatched) == 0);
}

TEST_CASE("A region whose frame has returned is the same call, at the place where it goes on") {
  FakeClock clock(1'000);
  FakePython::reset();
  FakePython::functions = {{2001, "program"}, {2002, "__enter__"}};
  FakePython::chain = {{100, 2001, 10}, {200, 2002, 5}};
  RecordedProgram program;
  int outer = 0;
  int inner = 0;
  int op = 0;
  const auto work = [&](int64_t ns) {
    clock.advance(ns);
    clock.advance_cpu(ns);
  };
  begin_region("outer", &outer);
  work(11);
  FakePython::chain = {{100, 2001, 11}, {200, 2002, 6}};
  begin_region("inner", &inner, LEADLINE_REGION_PHASE);
  FakePython::chain = {{100, 2001, 12}};
  work(100);
  Monitor::instance().begin_operator(operator_named("aten::mm"), &op);
  work(1'000);
  Monitor::instance().end_operator(&op);
  work(10'000);
  end_region(&inner, LEADLINE_REGION_PHASE);
  work(100'000);
  end_region(&outer);
  program.take();
  const auto check = [&](std::string_view place, MetricKind metric, int64_t value) {
    CAPTURE(place);
    const Measured found = program.measured(place, metric);
    CHECK(found.count == 1);
    CHECK(found.sum == value);
    CHECK(found.min == value);
    CHECK(found.max == value);
    CHECK(found.sum_squares == static_cast<double>(value) * static_cast<double>(value));
  };
  check("main/outer", MetricKind::kCallTime, 111'111);
  check("main/outer", MetricKind::kTime, 100'011);
  check("main/outer", MetricKind::kRunningTime, 100'011);
  check("main/outer/inner", MetricKind::kCallTime, 11'100);
  check("main/outer/inner", MetricKind::kTime, 10'100);
  check("main/outer/inner", MetricKind::kRunningTime, 11'100);
  check("main/outer/inner/program/aten::mm", MetricKind::kTime, 1'000);
  for (const std::string& place : program.paths()) {
    const bool elsewhere = place.ends_with("outer") || place.ends_with("inner");
    if (elsewhere && !place.starts_with("main/outer")) CHECK(program.measured(place, MetricKind::kTime).count == 0);
  }
  CHECK(program.measured("main/program/outer", MetricKind::kCallTime).count == 0);
  CHECK(losses().total(LossKind::kRegionUnanchored) == 0);
  FakePython::reset();
}

TEST_CASE("What ran in a region before its frame returned is part of its stay there, and no place holds more") {
  FakeClock clock(1'000);
  FakePython::reset();
  FakePython::functions = {{3001, "program"}, {3002, "opens"}, {3003, "works"}};
  FakePython::chain = {{100, 3001, 10}, {200, 3002, 5}};
  RecordedProgram program;
  int outer = 0;
  int inner = 0;
  int op = 0;
  begin_region("outer", &outer);
  clock.advance(1);
  begin_region("inner", &inner);
  clock.advance(10);
  FakePython::chain = {{100, 3001, 10}, {200, 3002, 6}, {300, 3003, 1}};
  Monitor::instance().begin_operator(operator_named("aten::mm"), &op);
  clock.advance(100);
  Monitor::instance().end_operator(&op);
  clock.advance(1'000);
  FakePython::chain = {{100, 3001, 11}};  // both outlive it
  Monitor::instance().begin_operator(operator_named("aten::mm"), &op);
  clock.advance(10'000);
  Monitor::instance().end_operator(&op);
  end_region(&outer);  // out of order
  clock.advance(100'000);
  end_region(&inner);
  program.take();
  const auto sum = [&](std::string_view place, MetricKind metric) { return program.measured(place, metric).sum; };
  CHECK(sum("main/program/outer", MetricKind::kTime) == 1);
  CHECK(sum("main/program/outer/inner", MetricKind::kTime) == 1'010);
  CHECK(sum("main/program/outer/inner/opens/works/aten::mm", MetricKind::kTime) == 100);
  CHECK(sum("main/outer/inner/program/aten::mm", MetricKind::kTime) == 10'000);
  CHECK(sum("main/outer", MetricKind::kCallTime) == 11'111);
  CHECK(sum("main/outer", MetricKind::kTime) == 0);
  CHECK(sum("main/inner", MetricKind::kCallTime) == 111'110);
  CHECK(sum("main/inner", MetricKind::kTime) == 100'000);
  CHECK(program.measured("main/outer", MetricKind::kCallTime).count == 1);
  CHECK(program.measured("main/inner", MetricKind::kCallTime).count == 1);
  FakePython::reset();
}

TEST_CASE("A place that a callback asks for when a region ends moves nothing") {
  FakeClock clock(1'000);
  FakePython::reset();
  FakePython::functions = {{4001, "program"}, {4002, "opens"}};
  FakePython::chain = {{100, 4001, 10}, {200, 4002, 5}};
  RecordedProgram program;
  leadline_context asked = 0;
  leadline_subscription asks = 0;
  const auto ask = [](const leadline_event* event, void* answer) {
    if (event->phase != LEADLINE_END) return;
    FakePython::chain = {{100, 4001, 11}};  // as if the frame had returned meanwhile
    *static_cast<leadline_context*>(answer) = leadline_monitor_context();
  };
  REQUIRE(leadline_monitor_register(LEADLINE_DOMAIN_REGION, ask, &asked, &asks) == LEADLINE_OK);
  int outer = 0;
  int inner = 0;
  begin_region("outer", &outer);
  clock.advance(1);
  begin_region("inner", &inner);
  clock.advance(10);
  end_region(&inner);
  FakePython::chain = {{100, 4001, 11}};
  clock.advance(100);
  end_region(&outer);
  leadline_monitor_unregister(asks);
  CHECK(asked != 0);
  program.take();
  CHECK(program.measured("main/program/outer/inner", MetricKind::kCallTime).sum == 10);
  CHECK(program.measured("main/program/outer/inner", MetricKind::kCallTime).count == 1);
  CHECK(program.measured("main/program/outer", MetricKind::kCallTime).sum == 111);
  CHECK(program.measured("main/program/outer", MetricKind::kCallTime).count == 1);
  CHECK(program.measured("main/program/outer", MetricKind::kTime).sum == 101);
  CHECK(losses().total(LossKind::kInternalError) == 0);
  CHECK(losses().total(LossKind::kOperatorEndUnmatched) == 0);
  FakePython::reset();
}

TEST_CASE("A region of a coroutine is one call however often it is suspended, with a value for each stay") {
  FakeClock clock(1'000);
  FakePython::reset();
  FakePython::functions = {{1001, "loop"}, {1002, "task"}, {1003, "other"}};  // codes that no other test uses
  FakePython::suspending = {1002};
  FakePython::chain = {{100, 1001, 10}, {200, 1002, 50}};
  RecordedProgram program;
  int region = 0;
  int op = 0;
  begin_region("request", &region);
  for (const int64_t stay_ns : {3, 50}) {
    FakePython::chain = {{100, 1001, 10}, {200, 1002, 51}};
    Monitor::instance().begin_operator(operator_named("aten::mm"), &op);
    Monitor::instance().end_operator(&op);
    clock.advance(stay_ns);
    clock.advance_cpu(stay_ns);
    FakePython::chain = {{100, 1001, 10}, {300, 1003, 1}};
    Monitor::instance().begin_operator(operator_named("between"), &op);
    clock.advance(1'000'000);
    clock.advance_cpu(1'000'000);
    Monitor::instance().end_operator(&op);
  }
  end_region(&region);  // while it is suspended
  program.take();
  const std::string place = "main/loop/request";
  const Measured calls = program.measured(place, MetricKind::kCallTime);
  CHECK(calls.count == 1);
  CHECK(calls.sum == 53);
  CHECK(calls.min == 53);
  CHECK(calls.max == 53);
  CHECK(calls.sum_squares == 53 * 53);
  for (const MetricKind metric : {MetricKind::kTime, MetricKind::kRunningTime}) {
    const Measured stays = program.measured(place, metric);
    CHECK(stays.count == 2);
    CHECK(stays.sum == 53);
    CHECK(stays.min == 3);
    CHECK(stays.max == 50);
    CHECK(stays.sum_squares == 3 * 3 + 50 * 50);
  }
  FakePython::reset();
}

TEST_CASE("A step is recorded at its border: what its thread did, and phases without those inside them") {
  FakeClock clock(1'000);
  RecordedProgram program;
  const auto work = [&](int64_t ns) {
    clock.advance(ns);
    clock.advance_cpu(ns / 2);
  };
  const auto border = [](int64_t number) {
    leadline_event event{};
    event.domain = LEADLINE_DOMAIN_REGION;
    event.phase = LEADLINE_INSTANT;
    event.of.region.kind = LEADLINE_REGION_STEP;
    event.of.region.step = number;
    leadline_monitor_emit(&event);
  };
  int phase = 0;
  int inner = 0;
  int op = 0;
  work(5'000'000);
  border(0);  // nobody knows when this one began
  for (int64_t number = 1; number <= 3; ++number) {
    begin_region("data loading", &phase, LEADLINE_REGION_PHASE);
    work(100 * number);
    begin_region("garbage collection", &inner, LEADLINE_REGION_PHASE);
    work(20);
    end_region(&inner, LEADLINE_REGION_PHASE);
    end_region(&phase, LEADLINE_REGION_PHASE);
    Monitor::instance().begin_operator(operator_named("aten::mm"), &op);
    work(1'000);
    Monitor::instance().end_operator(&op);
    border(number);
  }
  program.take();
  REQUIRE(program.shown.steps);
  const tables::Steps& steps = *program.shown.steps;
  int64_t count = 0;
  int64_t wall_ns = 0;
  int64_t running_ns = 0;
  int64_t operators = 0;
  int64_t operator_ns = 0;
  int64_t data_ns = 0;
  int64_t collection_ns = 0;
  for (size_t row = 0; row < steps.kind.size(); ++row) {
    if (steps.kind[row] != 0) continue;
    count += static_cast<int64_t>(steps.count[row]);
    wall_ns += steps.wall_ns[row];
    running_ns += steps.running_ns[row];
    operators += steps.operators[row];
    operator_ns += steps.operator_ns[row];
    data_ns += steps.data_ns[row];
    collection_ns += steps.collection_ns[row];
    CHECK(steps.counted[row] == steps.count[row]);
  }
  CHECK(count == 3);
  CHECK(wall_ns == 3 * 1'020 + 600);
  CHECK(running_ns == wall_ns / 2);
  CHECK(operators == 3);
  CHECK(operator_ns == 3'000);
  CHECK(data_ns == 600);
  CHECK(collection_ns == 60);
  CHECK(steps.kind.back() == 1);
  CHECK(steps.first.back() == 1);  // the fastest of the slowest
  REQUIRE(program.shown.step_walls);
  CHECK(program.shown.step_walls->count == std::vector<uint64_t>{1, 1, 1});
}

TEST_CASE("A call that is suspended and resumed is one call, with the time of all its stays where each was") {
  FakeClock clock(1'000);
  RecordedProgram program;
  int64_t stays_ns = 0;
  const auto stay = [&](const char* caller, int64_t ns, uint32_t flags) {
    int outer = 0;
    int call = 0;
    int op = 0;
    begin_region(caller, &outer);
    begin_region("coroutine", &call, LEADLINE_REGION_USER, 0, &stays_ns);
    clock.advance(ns);
    Monitor::instance().begin_operator(operator_named("aten::mm"), &op);
    clock.advance(7);
    Monitor::instance().end_operator(&op);
    end_region(&call, LEADLINE_REGION_USER, flags, &stays_ns);
    end_region(&outer);
    clock.advance(1'000'000);  // suspended: nobody's
  };
  stay("a", 100, LEADLINE_REGION_FLAG_SUSPENDS);
  stay("a", 20, LEADLINE_REGION_FLAG_SUSPENDS);
  stay("b", 3, 0);
  CHECK(stays_ns == 144);
  program.take();
  CHECK(program.measured("main/a/coroutine", MetricKind::kCallTime).count == 0);
  CHECK(program.measured("main/b/coroutine", MetricKind::kCallTime).count == 1);
  CHECK(program.measured("main/b/coroutine", MetricKind::kCallTime).sum == 144);
  CHECK(program.measured("main/a/coroutine", MetricKind::kTime).sum == 120);
  CHECK(program.measured("main/b/coroutine", MetricKind::kTime).sum == 3);
  CHECK(program.measured("main/a", MetricKind::kTime).sum == 0);
  CHECK(program.measured("main/a", MetricKind::kCallTime).count == 2);
  CHECK(program.measured("main/a/coroutine/aten::mm", MetricKind::kCallTime).count == 2);
}
