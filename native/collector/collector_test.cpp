#include "collector/collector.h"

#include <algorithm>
#include <map>
#include <string>
#include <thread>

#include "base/clock.h"
#include "stack/fake_python.h"
#include "testing/failing_allocator.h"
#include "testing/recorded_program.h"

using namespace leadline;
using namespace leadline::testing;

// Before the first event: every thread's path has it.
const bool g_python = (Monitor::instance().set_python(FakePython::source()), true);

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

TEST_CASE("A call counts as recorded where the autograd number has grown behind it") {
  RecordedProgram program;
  const auto run = [](const char* name, int64_t sequence, bool stable = true) {
    int token = 0;
    leadline_operator_event op = operator_named(name, sequence);
    op.thread = 7'000;
    op.stable_name = stable ? 1 : 0;
    Monitor::instance().begin_operator(op, &token);
    Monitor::instance().end_operator(&token);
  };
  const auto inside = [](const char* name, int64_t sequence, const auto& inner) {
    int token = 0;
    leadline_operator_event op = operator_named(name, sequence);
    op.thread = 7'000;
    op.stable_name = 1;
    Monitor::instance().begin_operator(op, &token);
    inner();
    Monitor::instance().end_operator(&token);
  };
  static const char* const kLinear = "aten::linear";
  static const char* const kAddmm = "aten::addmm";
  static const char* const kEqual = "aten::eq";
  static const char* const kQuiet = "aten::exp";
  for (int64_t turn = 0; turn < 3; ++turn) {
    inside(kLinear, 2 * turn, [&] { run(kAddmm, 2 * turn); });  // the inner one made the node
    run(kEqual, 2 * turn + 1);                                  // integers: no node
    run(kQuiet, -1);                                            // below no_grad
    run("Square", 2 * turn + 1, false);                         // a function of the user's, by text
  }
  run(kEqual, 5);  // nothing has been recorded since the last one began
  program.take();
  const auto recorded = [&](const char* path) { return program.measured(path, MetricKind::kRecorded); };
  CHECK(recorded("main/aten::linear/aten::addmm").sum == 3);
  CHECK(recorded("main/aten::linear/aten::addmm").count == 3);
  CHECK(recorded("main/aten::linear").count == 0);
  CHECK(recorded("main/aten::eq").count == 0);
  CHECK(recorded("main/aten::exp").count == 0);
  CHECK(recorded("main/Square").sum == 2);  // whether the last was is not known yet
  program.take();
  CHECK(recorded("main/Square").sum == 2);
}

TEST_CASE("Input texts that are kept are compared by their address, others by their content") {
  RecordedProgram program;
  static const char* const kName = "aten::mm";
  static const char* const kSmall = R"({"shapes": [[2, 2]]})";
  static const char* const kLarge = R"({"shapes": [[64, 64]]})";
  std::string changing = kSmall;
  const auto run = [](const char* inputs, bool stable) {
    int token = 0;
    leadline_operator_event op = operator_named(kName);
    op.stable_name = 1;
    op.inputs = inputs;
    op.stable_inputs = stable ? 1 : 0;
    Monitor::instance().begin_operator(op, &token);
    Monitor::instance().end_operator(&token);
  };
  for (int turn = 0; turn < 5; ++turn) {
    run(kSmall, true);
    run(kLarge, true);
    changing = turn % 2 == 0 ? kSmall : kLarge;
    run(changing.c_str(), false);
    run(nullptr, false);
  }
  program.take();
  std::map<std::string, uint64_t> calls;
  for (size_t i = 0; i < program.shown.metrics.node.size(); ++i) {
    const uint32_t node = program.shown.metrics.node[i];
    if (program.shown.metrics.metric[i] != static_cast<uint8_t>(MetricKind::kCallTime)) continue;
    if (program.path(node) != "main/aten::mm") continue;
    calls[std::string(program.text(program.shown.frames.detail[program.shown.nodes.frame[node]]))] +=
        program.shown.metrics.count[i];
  }
  CHECK(calls == std::map<std::string, uint64_t>{{kSmall, 5 + 3}, {kLarge, 5 + 2}, {"", 5}});
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
