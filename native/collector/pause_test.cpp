// Pause and resume lose exactly what happens in between.
#include <doctest/doctest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "stack/fake_python.h"
#include "testing/recorded_program.h"

using namespace leadline;
using namespace leadline::testing;

namespace {

void memory(uint64_t address, int64_t bytes) {
  leadline_event event{};
  event.domain = LEADLINE_DOMAIN_MEMORY;
  event.phase = LEADLINE_INSTANT;
  event.of.memory = {address, bytes, 0, -1, -1, -1};
  leadline_monitor_emit(&event);
}

int64_t live_bytes(RecordedProgram& program) {
  const auto devices = program.collector.ledger().devices();
  return devices.empty() ? 0 : devices[0].live_bytes;
}

struct PausedProgram : RecordedProgram {
  void passes(int64_t wall_ns, int64_t cpu_ns = 0) {
    clock.advance(wall_ns - cpu_ns);
    clock.advance_cpu(cpu_ns);
    clock.advance(cpu_ns);
  }
  void begin(const char* name, const void* token) { Monitor::instance().begin_operator(operator_named(name), token); }
  void end(const void* token) { Monitor::instance().end_operator(token); }
  Measured calls(const char* path) { return measured(path, MetricKind::kCallTime); }
  FakeClock clock{1'000};
};

}  // namespace

TEST_CASE("Scopes that are open around a pause go on, less what it took") {
  PausedProgram program;
  int region = 0;
  int op = 0;
  begin_region("epoch", &region);
  program.passes(10, 4);
  program.begin("outer", &op);
  program.passes(100, 40);
  program.pause();
  program.passes(1'000'000, 700'000);
  program.resume();
  program.passes(1'000, 400);
  program.end(&op);
  program.passes(10'000, 4'000);
  program.pause();
  program.passes(3'000'000, 700'000);
  program.resume();
  end_region(&region);
  program.take();
  CHECK(program.calls("main/epoch").sum == 11'110);
  CHECK(program.calls("main/epoch").count == 1);
  CHECK(program.measured("main/epoch", MetricKind::kTime).sum == 10'010);
  CHECK(program.calls("main/epoch/outer").sum == 1'100);
  CHECK(program.measured("main/epoch", MetricKind::kRunningTime).sum == 4'444);
  CHECK(program.shown.threads.operator_ns[0] == 1'100);
  CHECK(losses().total(LossKind::kOperatorEndUnmatched) == 0);
}

TEST_CASE("Scopes that end in a pause end at its beginning") {
  PausedProgram program;
  int region = 0;
  int op = 0;
  begin_region("epoch", &region);
  program.passes(10, 1);
  program.begin("outer", &op);
  program.passes(100, 2);
  program.pause();
  program.passes(1'000'000, 500'000);
  program.end(&op);
  program.passes(1'000'000, 500'000);
  end_region(&region);
  program.passes(1'000'000, 500'000);
  program.resume();
  int later = 0;
  begin_region("later", &later);
  program.passes(7);
  end_region(&later);
  program.take();
  CHECK(program.calls("main/epoch").sum == 110);
  CHECK(program.calls("main/epoch/outer").sum == 100);
  CHECK(program.measured("main/epoch", MetricKind::kRunningTime).sum == 3);
  CHECK(program.calls("main/later").sum == 7);  // and not below the others
  CHECK(losses().total(LossKind::kOperatorEndUnmatched) == 0);
}

TEST_CASE("What begins in a pause is nobody's, also when it ends later, and no loss") {
  PausedProgram program;
  int region = 0;
  int unseen = 0;
  int inside = 0;
  int op = 0;
  begin_region("epoch", &region);
  program.pause();
  begin_region("unseen", &unseen);
  program.begin("aten::unseen", &inside);
  program.passes(1'000'000);
  program.resume();
  program.passes(10);
  program.end(&inside);
  program.begin("aten::mm", &op);
  program.passes(100);
  program.end(&op);
  end_region(&unseen);
  end_region(&region);
  CHECK(losses().total(LossKind::kOperatorEndUnmatched) == 0);
  program.end(&op);  // this one is
  CHECK(losses().total(LossKind::kOperatorEndUnmatched) == 1);
  program.take();
  CHECK(program.calls("main/epoch").sum == 110);
  CHECK(program.calls("main/epoch/aten::mm").sum == 100);
  for (const std::string& path : program.paths()) CHECK(path.find("unseen") == std::string::npos);
}

TEST_CASE("A pause is part of the event that it lies in and of no later one of the same region") {
  PausedProgram program;
  program.collector.window().open(1'000);
  FakePython::reset();
  FakePython::functions = {{9'001, "main"}, {9'004, "task"}};
  FakePython::suspending = {9'004};
  const auto run = [&](bool task) {
    FakePython::chain = {{100, 9'001, 10}};
    if (task) FakePython::chain.push_back({300, 9'004, 50});
    int op = 0;
    program.begin("op", &op);
    program.end(&op);
  };
  int region = 0;
  FakePython::chain = {{100, 9'001, 10}, {300, 9'004, 50}};
  begin_region("coroutine", &region);
  program.passes(10);
  program.pause();
  program.passes(1'000);
  program.resume();
  program.passes(10);
  run(false);  // it is suspended
  program.passes(100);
  run(true);
  const int64_t resumed_ns = now_ns();
  program.passes(5);
  end_region(&region);
  std::vector<TraceEvent> stays;
  program.collector.window().for_each_event([&](const TraceEvent& event) {
    if (event.kind == EventKind::kRegion) stays.push_back(event);
  });
  FakePython::reset();
  REQUIRE(stays.size() == 2);
  CHECK(stays[0].duration_ns == 1'020);
  CHECK(stays[1].start_ns == resumed_ns);
  CHECK(stays[1].duration_ns == 5);
}

TEST_CASE("A callback hears what the pause hides from the figures") {
  PausedProgram program;
  static int begins = 0;
  begins = 0;
  leadline_subscription id = 0;
  REQUIRE(leadline_monitor_register(
              LEADLINE_DOMAIN_REGION,
              [](const leadline_event* event, void*) { begins += event->phase == LEADLINE_BEGIN ? 1 : 0; }, nullptr,
              &id) == LEADLINE_OK);
  int region = 0;
  int unseen = 0;
  begin_region("epoch", &region);
  program.pause();
  begin_region("unseen", &unseen);
  program.passes(1'000);
  program.resume();
  program.passes(10);
  end_region(&unseen);
  end_region(&region);
  leadline_monitor_unregister(id);
  program.take();
  CHECK(begins == 2);
  CHECK(program.calls("main/epoch").sum == 10);
  CHECK(program.calls("main/epoch/unseen").count == 0);
  CHECK(losses().total(LossKind::kOperatorEndUnmatched) == 0);
}

TEST_CASE("What is freed in a pause lives no longer, what is allocated in it is nobody's") {
  PausedProgram program;
  int region = 0;
  begin_region("epoch", &region);
  memory(0x1000, 64);
  memory(0x2000, 100);
  program.pause();
  memory(0x1000, INT64_MIN);
  memory(0x3000, 5'000);
  memory(0x4000, 6'000);
  memory(0x4000, INT64_MIN);
  CHECK(live_bytes(program) == 100);
  program.resume();
  memory(0x3000, INT64_MIN);
  memory(0x1000, 30);
  end_region(&region);
  program.take();
  CHECK(live_bytes(program) == 130);
  CHECK(program.collector.ledger().devices()[0].peak_bytes == 164);
  CHECK(program.measured("main/epoch", MetricKind::kAllocBytes).sum == 194);
  CHECK(program.measured("main/epoch", MetricKind::kFreeBytes).sum == 64);
  CHECK(losses().total(LossKind::kFreeUnknown) == 0);
}

TEST_CASE("A step around a pause is shorter by it") {
  PausedProgram program;
  const auto step = [] {
    leadline_event event{};
    event.domain = LEADLINE_DOMAIN_REGION;
    event.phase = LEADLINE_INSTANT;
    event.of.region.kind = LEADLINE_REGION_STEP;
    event.of.region.step = -1;
    leadline_monitor_emit(&event);
  };
  step();
  program.passes(10);
  program.pause();
  program.passes(1'000'000);
  program.resume();
  program.passes(100);
  step();
  program.take();
  CHECK(program.calls("main/step").sum == 110);
}

TEST_CASE("A thread's wall time leaves out every pause, whatever of the thread lies in it") {
  PausedProgram program;
  const auto wall_ns = [&](const char* name) {
    program.collector.refresh_thread_times();
    program.take();
    for (size_t row = 0; row < program.shown.threads.name.size(); ++row) {
      if (program.text(program.shown.threads.name[row]) == name) return program.shown.threads.wall_ns[row];
    }
    return int64_t{-1};
  };
  const auto work = [] {
    int region = 0;
    begin_region("work", &region);
    end_region(&region);
  };
  program.passes(500);
  program.pause();
  program.passes(1'000'000);
  program.resume();
  work();  // the main thread is first seen after a pause
  program.passes(10);
  program.pause();
  program.passes(1'000'000);
  CHECK(wall_ns("main") == 10);  // a segment that is written in a pause
  program.resume();
  program.passes(100, 70);
  CHECK(wall_ns("main") == 110);
  program.pause();
  program.passes(1'000'000);
  program.collector.pause();  // a second one is none
  CHECK(program.collector.paused_ns() == 3'000'000);
  CHECK(wall_ns("main") == 110);
  CHECK(program.shown.threads.cpu_ns[0] == 70);
}

TEST_CASE("A thread that ends in a pause was seen until the pause began") {
  PausedProgram program;
  std::atomic<int> turn{0};
  const auto wait_for = [&](int value) {
    while (turn.load() != value) std::this_thread::yield();
  };
  std::thread helper([&] {
    int region = 0;
    begin_region("work", &region);
    end_region(&region);
    turn = 1;
    wait_for(2);
  });
  wait_for(1);
  program.passes(40);
  program.pause();
  program.passes(1'000'000);
  turn = 2;
  helper.join();
  program.resume();
  program.passes(5'000);
  program.collector.refresh_thread_times();
  program.take();
  REQUIRE(program.shown.threads.wall_ns.size() == 1);
  CHECK(program.shown.threads.wall_ns[0] == 40);
}

TEST_CASE("Threads that work while measuring pauses and goes on lose no end and keep no scope") {
  RecordedProgram program;
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  threads.reserve(3);
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      while (!stop.load(std::memory_order_relaxed)) {
        int region = 0;
        int op = 0;
        begin_region("epoch", &region);
        Monitor::instance().begin_operator(operator_named("aten::mm"), &op);
        Monitor::instance().end_operator(&op);
        end_region(&region);
      }
      CHECK(leadline_monitor_published() == 0);
    });
  }
  for (int round = 0; round < 300; ++round) {
    program.pause();
    std::this_thread::yield();
    program.resume();
  }
  stop.store(true);
  for (std::thread& thread : threads) thread.join();
  program.take();
  CHECK(losses().total(LossKind::kOperatorEndUnmatched) == 0);
  // A region that begins while measuring rests is not known, so what runs inside it after that stands without it.
  for (const std::string& path : program.paths()) {
    const size_t below = path.find('/');
    const std::string place = below == std::string::npos ? "" : path.substr(below);
    CAPTURE(path);
    CHECK((place.empty() || place == "/epoch" || place == "/epoch/aten::mm" || place == "/aten::mm"));
  }
}
