#include "collector/event_window.h"

#include <doctest/doctest.h>

#include <map>
#include <thread>
#include <vector>

#include "base/clock.h"

using namespace leadline;

namespace {

TraceEvent at(std::int64_t start_ns, std::int64_t duration_ns = 1) {
  TraceEvent event;
  event.start_ns = start_ns;
  event.duration_ns = duration_ns;
  return event;
}

std::map<std::int64_t, std::int64_t> durations(const EventWindow& window) {
  std::map<std::int64_t, std::int64_t> found;
  window.for_each_event([&](const TraceEvent& event) { found[event.start_ns] = event.duration_ns; });
  return found;
}

}  // namespace

TEST_CASE("Device work that ran in the window is kept when it is reported after its end") {
  LossCounters losses;
  FakeClock clock(100);
  EventWindow window(losses);
  EventLane& lane = window.create_lane();
  window.open(100);
  clock.set(200);
  window.close();
  CHECK(window.covers(150));
  CHECK_FALSE(window.covers(50));
  CHECK_FALSE(window.covers(200));
  CHECK(lane.add(at(150)) != kNoEvent);
  CHECK(lane.add(at(250)) == kNoEvent);
  window.clear();
  CHECK_FALSE(window.covers(150));
}

TEST_CASE("Events are kept only while the window is open, and that is no loss") {
  LossCounters losses;
  EventWindow window(losses);
  EventLane& lane = window.create_lane();
  CHECK_FALSE(window.was_opened());
  CHECK(lane.add(at(1)) == kNoEvent);
  window.open(100);
  CHECK(lane.add(at(2)) != kNoEvent);
  window.close();
  CHECK(lane.add(at(3)) == kNoEvent);
  window.open(100);
  CHECK(lane.add(at(4)) != kNoEvent);
  CHECK(window.was_opened());
  CHECK(durations(window) == std::map<std::int64_t, std::int64_t>{{2, 1}, {4, 1}});
  CHECK(losses.total(LossKind::kEventsDropped) == 0);
}

TEST_CASE("An event that has not ended has duration -1 until it is finished") {
  LossCounters losses;
  EventWindow window(losses);
  EventLane& lane = window.create_lane();
  window.open(100);
  const EventSlot open = lane.add(at(1, -1));
  const EventSlot done = lane.add(at(2, -1));
  lane.finish(done, 55);
  lane.finish(kNoEvent, 66);
  CHECK(durations(window) == std::map<std::int64_t, std::int64_t>{{1, -1}, {2, 55}});
  window.close();
  lane.finish(open, 77);  // may end after the window has closed
  CHECK(durations(window)[1] == 77);
}

TEST_CASE("The limit holds exactly for one thread and is never exceeded by many; what is beyond is counted") {
  LossCounters losses;
  EventWindow window(losses);
  EventLane& single = window.create_lane();
  window.open(1000);
  for (int i = 0; i < 1500; ++i) single.add(at(i));
  CHECK(window.size() == 1000);
  CHECK(losses.total(LossKind::kEventsDropped) == 500);

  window.clear();
  losses.clear();
  CHECK(window.size() == 0);
  constexpr int kThreads = 4;
  constexpr int kEach = 1000;
  window.open(2000);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&window] {
      EventLane& lane = window.create_lane();
      for (int i = 0; i < kEach; ++i) lane.add(at(i));
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(window.size() <= 2000);
  CHECK(window.size() > 2000 - 64 * kThreads);
  CHECK(window.size() + losses.total(LossKind::kEventsDropped) == kThreads * kEach);
}

TEST_CASE("A reader may look while threads add and finish") {
  LossCounters losses;
  EventWindow window(losses);
  window.open(100'000);
  std::atomic<bool> done{false};
  std::thread writer([&] {
    EventLane& lane = window.create_lane();
    for (int i = 1; i <= 20'000; ++i) lane.finish(lane.add(at(i, -1)), 2 * i);
    done = true;
  });
  std::uint64_t wrong = 0;
  while (!done) {
    window.for_each_event([&](const TraceEvent& event) {
      if (event.duration_ns != -1 && event.duration_ns != 2 * event.start_ns) ++wrong;
    });
  }
  writer.join();
  CHECK(wrong == 0);
  CHECK(window.size() == 20'000);
  CHECK(window.held_bytes() >= 20'000 * sizeof(TraceEvent));
}
