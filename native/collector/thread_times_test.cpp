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
  for (const uint64_t tid : {77, 78, 79}) Monitor::instance().thread_over(tid, thread_cpu_ns());
  program.check(3);
}
