#include "collector/collector.h"

#include <algorithm>
#include <thread>

#include "base/clock.h"
#include "stack/fake_python.h"
#include "testing/failing_allocator.h"
#include "testing/recorded_program.h"

using namespace leadline;
using namespace leadline::testing;

// Before the first event: every thread's path has it.
const bool g_python = (Monitor::instance().set_python(FakePython::source()), true);

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
  work(1);
  Monitor::instance().begin_operator(operator_named("while it was entered"), &op);
  work(10);
  Monitor::instance().end_operator(&op);
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
  check("main/outer", MetricKind::kTime, 100'001);
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

TEST_CASE("Backward operators find forward operators of threads that have ended and whose state serves others") {
  RecordedProgram program;
  const auto run = [](leadline_operator_event op) {
    int token = 0;
    Monitor::instance().begin_operator(op, &token);
    Monitor::instance().end_operator(&token);
  };
  // Sequence numbers are counted per thread, so all of these have the same.
  for (uint64_t thread = 5'000; thread < 5'004; ++thread) {
    std::thread([&] {
      leadline_operator_event op = operator_named("aten::mm", 0);
      op.thread = thread;
      const std::string name = "forward " + std::to_string(thread);
      int region = 0;
      begin_region(name.c_str(), &region);
      run(op);
      end_region(&region);
    }).join();
  }
  std::thread([&] {
    for (uint64_t thread = 5'000; thread < 5'004; ++thread) {
      leadline_operator_event op = operator_named("MmBackward0", 0);
      op.backward = 1;
      op.forward_thread = thread;
      run(op);
    }
  }).join();
  program.take();
  CHECK(losses().total(LossKind::kBackwardWithoutForward) == 0);
  for (int thread = 5'000; thread < 5'004; ++thread) {
    const std::string path = "/forward " + std::to_string(thread) + "/aten::mm/backward/MmBackward0";
    uint64_t calls = 0;
    for (const std::string& known : program.paths()) {
      if (known.ends_with(path)) calls += program.measured(known, MetricKind::kCallTime).count;
    }
    CHECK(calls == 1);
  }
}

TEST_CASE("Threads that book waits keep no table of device work") {
  RecordedProgram program;
  const size_t before = program.collector.held_bytes();
  for (int i = 0; i < 8; ++i) {
    std::thread([] {
      int region = 0;
      begin_region("wait", &region);
      measure_at(leadline_monitor_context(), MetricKind::kSyncTime, 5);
      end_region(&region);
    }).join();
  }
  CHECK(program.collector.held_bytes() - before < 400'000);
}

TEST_CASE("A free of unknown size while a segment is written counts in the file") {
  RecordedProgram program;
  const auto memory = [](int64_t bytes) {
    leadline_event event{};
    event.domain = LEADLINE_DOMAIN_MEMORY;
    event.phase = LEADLINE_INSTANT;
    event.of.memory = {0x1000, bytes, 0, -1, -1, -1};
    leadline_monitor_emit(&event);
  };
  int region = 0;
  begin_region("work", &region);
  memory(64);
  {
    const MemoryLedger::Hold writing(program.collector.ledger());
    memory(INT64_MIN);
  }
  memory(16);
  memory(INT64_MIN);
  end_region(&region);
  program.take();
  CHECK(program.measured("main/work", MetricKind::kAllocBytes).sum == 80);
  CHECK(program.measured("main/work", MetricKind::kFreeBytes).sum == 80);
  CHECK(program.measured("main/work", MetricKind::kFreeBytes).count == 2);
}

TEST_CASE("Without memory for a new call path an event is counted, and the program goes on") {
  FakePython::reset();
  {
    RecordedProgram program;
    std::thread([] {
      begin_region("known", &FakePython::chain);
      for (uintptr_t frame = 1; frame <= 200; ++frame) {
        FakePython::functions[frame] = "f" + std::to_string(frame);
        FakePython::chain.push_back({frame, frame, 1});
      }
      leadline_event event{};
      event.domain = LEADLINE_DOMAIN_MEMORY;
      event.phase = LEADLINE_INSTANT;
      event.of.memory = {0x1000, 64, 0, -1, -1, -1};
      {
        const NoMemory nothing;
        leadline_monitor_emit(&event);
        CHECK(leadline_monitor_context() != 0);
      }
      CHECK(losses().total(LossKind::kInternalError) > 0);
      event.of.memory.address = 0x2000;
      leadline_monitor_emit(&event);
      FakePython::reset();
    }).join();
    program.take();
    int64_t allocated = 0;
    for (const std::string& path : program.paths()) allocated += program.measured(path, MetricKind::kAllocBytes).sum;
    CHECK(allocated >= 64);
  }
}

TEST_CASE("A thread that ends while measuring is paused is over, and the next one is another thread") {
  RecordedProgram program;
  std::atomic<bool> paused{false};
  std::thread first([&] {
    int region = 0;
    begin_region("first", &region);
    end_region(&region);
    while (!paused.load()) std::this_thread::yield();
  });
  program.take();
  while (program.collector.trees().size() == 0) std::this_thread::yield();
  program.pause();
  paused.store(true);
  first.join();
  program.resume();
  program.collector.refresh_thread_times();
  std::thread([] {
    int region = 0;
    begin_region("second", &region);
    end_region(&region);
  }).join();
  program.take();
  CHECK(program.shown.threads.tid.size() == 2);
  for (const int64_t cpu_ns : program.shown.threads.cpu_ns) CHECK(cpu_ns >= 0);
}

TEST_CASE("Work of a helper thread is measured without memory for its place, and scopes may move without any") {
  RecordedProgram program;
  const leadline_context asked_at = place_of("launch");
  std::thread([asked_at] {
    place_of("warm");
    pthread_setname_np(pthread_self(), "a-helper-thread");
    leadline_event event{};
    event.domain = LEADLINE_DOMAIN_REGION;
    event.phase = LEADLINE_BEGIN;
    event.token = &event;
    event.of.region.name = "warm";
    event.of.region.asked_at = asked_at;
    {
      const NoMemory nothing;
      leadline_monitor_emit(&event);
    }
    end_region(&event);
    int first = 0;
    int second = 0;
    begin_region("warm", &first);
    begin_region("warm", &second);
    {
      const NoMemory nothing;
      end_region(&first);
      end_region(&second);
    }
  }).join();
  CHECK(losses().total(LossKind::kInternalError) > 0);
  program.take();  // the program has gone on
}
