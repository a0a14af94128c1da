// Rows of events: whole, in order, and what a full ring loses is counted.
#include "tools/event_tap.h"

#include <doctest/doctest.h>

#include <atomic>
#include <thread>
#include <vector>

using namespace leadline;

namespace {

void emit_memory(uint64_t address, int64_t bytes) {
  leadline_event event = leadline_event_of(LEADLINE_DOMAIN_MEMORY, LEADLINE_INSTANT);
  event.of.memory.address = address;
  event.of.memory.bytes = bytes;
  event.of.memory.device = -1;
  leadline_monitor_emit(&event);
}

void emit_region(leadline_phase phase, int64_t time_ns) {
  leadline_event event = leadline_event_of(LEADLINE_DOMAIN_REGION, phase);
  event.of.region.name = "region";
  event.of.region.kind = LEADLINE_REGION_PHASE;
  event.time_ns = time_ns;
  leadline_monitor_emit(&event);
}

}  // namespace

TEST_CASE("rows come in order and whole; a full ring loses the newest and says how many") {
  EventTap tap(LEADLINE_DOMAIN_MEMORY, 64);
  REQUIRE(tap.start());
  for (int i = 0; i < 100; ++i) emit_memory(1000 + static_cast<uint64_t>(i), i);
  std::vector<EventRow> rows(200);
  CHECK(tap.waiting() == 64);
  REQUIRE(tap.drain(rows.data(), 10) == 10);
  REQUIRE(tap.drain(rows.data() + 10, 190) == 54);
  for (int i = 0; i < 64; ++i) {
    CHECK(rows[static_cast<size_t>(i)].a == 1000 + i);
    CHECK(rows[static_cast<size_t>(i)].b == i);
  }
  CHECK(tap.lost() == 36);
  emit_memory(7, 7);
  CHECK(tap.drain(rows.data(), rows.size()) == 1);
  tap.stop();
  emit_memory(8, 8);
  CHECK(tap.drain(rows.data(), rows.size()) == 0);
}

TEST_CASE("a scope is one row with its duration, after what happened inside") {
  EventTap tap(LEADLINE_DOMAIN_MEMORY | LEADLINE_DOMAIN_REGION, 64);
  REQUIRE(tap.start());
  emit_region(LEADLINE_BEGIN, 100);
  emit_memory(1, 5);
  emit_region(LEADLINE_END, 350);
  std::vector<EventRow> rows(8);
  REQUIRE(tap.drain(rows.data(), rows.size()) == 2);
  CHECK(rows[0].domain == 1);
  CHECK(rows[1].domain == 2);
  CHECK(rows[1].time_ns == 100);
  CHECK(rows[1].duration_ns == 250);
  CHECK(rows[1].kind == LEADLINE_REGION_PHASE);
}

TEST_CASE("threads write while one drains: nothing is lost or torn that was not counted") {
  constexpr int kThreads = 3;
  constexpr int64_t kEach = 20'000;
  EventTap tap(LEADLINE_DOMAIN_MEMORY, 1 << 10);
  REQUIRE(tap.start());
  std::atomic<int> running{kThreads};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([t, &running] {
      for (int64_t i = 0; i < kEach; ++i) emit_memory(static_cast<uint64_t>(t), i * 3 + t);
      running.fetch_sub(1);
    });
  }
  uint64_t taken = 0;
  std::vector<int64_t> last(kThreads, -1);
  std::vector<EventRow> rows(512);
  for (bool more = true; more;) {
    more = running.load() != 0 || tap.waiting() != 0;
    const size_t count = tap.drain(rows.data(), rows.size());
    for (size_t i = 0; i < count; ++i) {
      const auto thread = static_cast<size_t>(rows[i].a);
      REQUIRE(rows[i].b % 3 == rows[i].a);
      REQUIRE(rows[i].b > last[thread]);
      last[thread] = rows[i].b;
    }
    taken += count;
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(taken + tap.lost() == kThreads * kEach);
}
