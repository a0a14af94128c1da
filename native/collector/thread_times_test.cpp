// How long threads were there and ran, with clocks whose every reading takes time.
#include <doctest/doctest.h>
#include <pthread.h>

#include <atomic>
#include <functional>
#include <thread>

#include "base/clock.h"
#include "stack/fake_python.h"
#include "testing/recorded_program.h"

using namespace leadline;
using namespace leadline::testing;

namespace {

struct TimedProgram : RecordedProgram {
  TimedProgram() { clock.readings_take(1'000); }
  void passes(int64_t ns) {  // all of it running
    clock.advance(ns);
    clock.advance_cpu(ns);
  }
  // A thread that works, waits until this one has done what is given, and works again.
  void around(const std::function<void()>& between) {
    std::atomic<int> at{0};
    const auto wait_for = [&at](int number) {
      while (at.load() != number) std::this_thread::yield();
    };
    std::thread thread([&] {
      region();
      at.store(1);
      wait_for(2);
      region();
    });
    wait_for(1);
    between();
    at.store(2);
    thread.join();
  }
  void region() {
    int token = 0;
    begin_region("work", &token);
    passes(100);
    end_region(&token);
  }
  leadline_context silent(uint64_t tid, bool new_born) {
    clockid_t cpu{};
    pthread_getcpuclockid(pthread_self(), &cpu);
    return Monitor::instance().thread_place(tid, "silent", cpu, new_born);
  }
  void check(size_t threads) {
    take();
    REQUIRE(shown.threads.tid.size() == threads);
    for (size_t i = 0; i < threads; ++i) {
      CAPTURE(i);
      CHECK(shown.threads.cpu_ns[i] > 0);
      CHECK(shown.threads.cpu_ns[i] < shown.threads.wall_ns[i]);  // each border gives a reading away
    }
  }
  FakeClock clock{1'000'000};
};

void begin(const char* name, const void* token) {
  leadline_operator_event op = operator_named(name);
  op.stable_name = 1;
  Monitor::instance().begin_operator(op, token);
}
void end(const void* token) { Monitor::instance().end_operator(token); }

}  // namespace

TEST_CASE("A thread that always runs is not said to run for longer than it was there") {
  TimedProgram program;
  SUBCASE("and ends") {
    program.around([] {});
    program.check(1);
  }
  SUBCASE("and goes on") {
    program.around([&] {
      program.collector.refresh_thread_times();
      program.check(1);
    });
  }
  SUBCASE("and is paused") {
    program.around([&] {
      program.pause();
      program.passes(1'000'000);
      program.collector.refresh_thread_times();
      program.check(1);
      program.resume();
      program.collector.refresh_thread_times();
      program.check(1);
    });
    program.check(1);
    CHECK(program.shown.threads.wall_ns[0] < 1'000'000);
  }
}

TEST_CASE("Nor is it between two looks at its clocks, however long the first one took") {
  TimedProgram program;
  struct Seen {
    int64_t cpu_ns, wall_ns;
  };
  const auto look = [&](int64_t reading_ns) {
    program.clock.readings_take(reading_ns);
    program.collector.refresh_thread_times();
    program.clock.readings_take(1'000);
    program.take();
    REQUIRE(program.shown.threads.tid.size() == 1);
    return Seen{program.shown.threads.cpu_ns[0], program.shown.threads.wall_ns[0]};
  };
  bool asked_for = false;
  SUBCASE("with events of its own") {}
  SUBCASE("without any") { asked_for = true; }
  const auto looks = [&] {
    const Seen first = look(5'000'000);  // whoever looks waits for a core between the clocks
    program.passes(10'000);
    const Seen second = look(1'000);
    CHECK(second.cpu_ns >= first.cpu_ns);
    CHECK(second.cpu_ns - first.cpu_ns <= second.wall_ns - first.wall_ns);
    program.clock.advance(10'000'000);  // it rests: now all of it can be told
    const Seen third = look(1'000);
    CHECK(third.cpu_ns - first.cpu_ns > 5'000'000);
  };
  if (asked_for) {
    program.silent(77, true);
    looks();
  } else {
    program.around(looks);
  }
}

TEST_CASE("Nor is one that was asked for before its first event, also around a pause") {
  TimedProgram program;
  program.passes(10'000);
  const bool new_born = true;
  program.silent(77, !new_born);
  program.silent(78, new_born);
  program.passes(500);
  program.collector.refresh_thread_times();
  program.check(2);
  program.pause();
  program.passes(1'000'000);
  program.collector.refresh_thread_times();
  program.check(2);
  program.resume();
  program.silent(79, !new_born);
  program.passes(500);
  program.collector.refresh_thread_times();
  program.check(3);
  for (const int64_t wall_ns : program.shown.threads.wall_ns) CHECK(wall_ns < 100'000);
  for (const uint64_t tid : {77, 78, 79}) Monitor::instance().thread_ran(tid, thread_cpu_ns(), true);
  program.check(3);
}

TEST_CASE("What a thread ran is told after its end, however often its clock was looked at in vain") {
  RecordedProgram program;
  std::atomic<bool> met{false};
  std::atomic<clockid_t> clock{};
  std::atomic<int64_t> ran_ns{-1};
  std::thread thread([&] {
    clockid_t own{};
    pthread_getcpuclockid(pthread_self(), &own);
    clock.store(own);
    ran_ns.store(0);
    while (!met.load()) std::this_thread::yield();
    ran_ns.store(thread_cpu_ns());
  });
  while (ran_ns.load() < 0) std::this_thread::yield();
  Monitor::instance().thread_place(77, "short", clock.load(), true);
  met.store(true);
  thread.join();
  for (int look = 0; look < 5; ++look) program.collector.refresh_thread_times();
  bool over = true;
  SUBCASE("where it still was at the last look") { over = false; }
  SUBCASE("while measuring runs") {}
  SUBCASE("after measuring has stopped") { program.pause(); }
  program.collector.refresh_thread_times();
  Monitor::instance().thread_ran(77, ran_ns.load(), over);
  program.collector.refresh_thread_times();
  program.take();
  REQUIRE(program.shown.threads.cpu_ns.size() == 1);
  CHECK(program.shown.threads.cpu_ns[0] >= ran_ns.load());  // it ends a moment after it looked
}

TEST_CASE("Of operators the CPU time is known by those that are looked at") {
  RecordedProgram program;
  FakeClock clock{1'000'000};
  int token = 0;
  // Long ones that wait for three quarters of their time between short ones that always run: each is as likely to be
  // looked at as its neighbour, so the sum is right although there are two kinds.
  constexpr int64_t kTurns = 4'000;
  for (int64_t turn = 0; turn < kTurns; ++turn) {
    begin("short", &token);
    clock.advance(20'000);
    clock.advance_cpu(20'000);
    end(&token);
    begin("long", &token);
    clock.advance(300'000);
    clock.advance_cpu(100'000);
    end(&token);
  }
  program.take();
  REQUIRE(program.shown.threads.operator_ns.size() == 1);
  CHECK(program.shown.threads.operator_ns[0] == kTurns * 320'000);
  const std::string thread(program.text(program.shown.threads.name[0]));
  const Measured ran = program.measured(thread, MetricKind::kOperatorRunningTime);
  CHECK(static_cast<double>(ran.sum) == doctest::Approx(kTurns * 120'000.0).epsilon(0.05));
}

TEST_CASE("An operator that was looked at and never ended does not count for the next one") {
  RecordedProgram program;
  FakeClock clock{1'000'000};
  int token = 0;
  for (int turn = 0; turn < 3; ++turn) {
    int region = 0;
    begin_region("around", &region);
    begin("torn", &token);
    clock.advance_cpu(50'000'000);
    end_region(&region);
    begin("whole", &token);
    clock.advance(100'000'000);
    end(&token);
    program.take();
  }
  const std::string thread(program.text(program.shown.threads.name[0]));
  CHECK(program.measured(thread, MetricKind::kOperatorRunningTime).sum == 0);
}

TEST_CASE("Threads that go on with the tree of one that has ended add to its operators") {
  RecordedProgram program;
  FakeClock clock{1'000'000};
  constexpr int64_t kThreads = 3 * TreeRegistry::kDistinctThreads;
  for (int64_t i = 0; i < kThreads; ++i) {
    std::thread([&] {
      int token = 0;
      begin("op", &token);
      clock.advance(1'000);
      clock.advance_cpu(500);
      end(&token);
    }).join();
  }
  program.take();
  int64_t operator_ns = 0;
  for (const int64_t one : program.shown.threads.operator_ns) operator_ns += one;
  CHECK(operator_ns == kThreads * 1'000);
  CHECK(program.shown.threads.operator_ns.size() == TreeRegistry::kDistinctThreads);
}
