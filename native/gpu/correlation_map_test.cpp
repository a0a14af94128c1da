// Launches found by their ids, and until when everything is known: logs of many threads, graphs, launches without a
// record, gaps between regions.
#include "gpu/correlation_map.h"

#include <doctest/doctest.h>

#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "testing/test_monitor.h"

namespace leadline::gpu {
namespace {

using Parts = std::vector<std::pair<leadline_context, std::int64_t>>;

std::int64_t now = 0;  // of the monitor

struct Map : CorrelationMap {
  Map() {
    now = 0;
    testing::TestMonitor::reset([] { return now; });
  }
  const std::uint32_t thread = log()->take();
  void launch(std::uint32_t id, std::int64_t start_ns, bool makes_work = true, int kind = LEADLINE_GPU_LAUNCH) {
    put(id, {id * 10ull, start_ns, thread, static_cast<std::uint8_t>(kind), 0, false}, makes_work);
  }
  Parts parts(std::int64_t from, std::int64_t to, const Launch& launch) {
    Parts found;
    split(from, to, launch, [&](leadline_context context, std::int64_t ns) { found.emplace_back(context, ns); });
    return found;
  }
  std::int64_t settled() { return watermark() + kClockSlackNs; }
};

}  // namespace

TEST_CASE("a launch is found by its id, one whose record is late after hundreds of thousands of others") {
  Map map;
  map.launch(7, 0);
  for (std::uint32_t id = 8; id < 300'000; ++id) {
    map.launch(id, id, id % 2 == 0);
    if (id % 2 == 0) REQUIRE(map.get(id));
  }
  CHECK(map.outstanding() == 1);
  const std::optional<Launch> late = map.get(7);
  REQUIRE(late);
  CHECK(late->context == 70);
  CHECK(map.outstanding() == 0);
  CHECK(map.forgotten() == 0);
  CHECK_FALSE(map.get(999'999'999));
  CHECK(map.get(299'999)->context == 2'999'990);
}

TEST_CASE("a call that made other calls than launches does not crowd launches out") {
  Map map;
  map.launch(1, 5);
  map.put(2, {20, 6, map.thread, LEADLINE_GPU_LAUNCH, 1, false}, false);  // inside of it, with an id of its own
  for (std::uint32_t id = 3; id < 100'000; ++id) map.launch(id, id, false, LEADLINE_GPU_OTHER);
  REQUIRE(map.get(2));
  CHECK(map.get(2)->outer == 1);
}

TEST_CASE("a graph launch answers for each of its nodes and is outstanding until the first, also among thousands") {
  Map map;
  map.launch(5, 100, true, LEADLINE_GPU_GRAPH_LAUNCH);
  CHECK(map.outstanding() == 1);
  for (std::uint32_t id = 6; id < 200'006; ++id) map.launch(id, 200);
  CHECK(map.outstanding() == 200'001);
  for (int node = 0; node < 100; ++node) CHECK(map.get(5)->context == 50);
  CHECK(map.outstanding() == 200'000);
  map.cancel(map.thread, 6);
  CHECK(map.settled() == 0);  // the time by the monitor's clock
  CHECK(map.outstanding() == 199'999);
}

TEST_CASE("nothing that is on its way began before the watermark") {
  Map map;
  now = 1000;
  CHECK(map.settled() == 1000);
  map.launch(1, 1000);
  map.launch(2, 1100);
  now = 5000;
  CHECK(map.settled() == 1000);
  map.get(2);
  CHECK(map.settled() == 1000);
  map.get(1, CorrelationMap::Record::kOther);  // the code was loaded for it: its work is still to come
  CHECK(map.settled() == 1000);
  map.get(1);
  CHECK(map.settled() == 5000);
}

TEST_CASE("the watermark is that of all threads, and waits for the nodes of a graph until no more come") {
  Map map;
  const std::uint32_t other = map.log()->take();
  map.launch(1, 2000, true, LEADLINE_GPU_GRAPH_LAUNCH);
  map.put(2, {20, 1500, other, LEADLINE_GPU_LAUNCH, 0, false}, true);
  now = 3000;
  CHECK(map.settled() == 1500);
  map.get(1);
  map.get(2);
  CHECK(map.settled() == 2000);
  now += CorrelationMap::kGraphRestNs / 2;
  CHECK(map.settled() == 2000);
  map.get(1);
  now += CorrelationMap::kGraphRestNs - 1;
  CHECK(map.settled() == 2000);
  now += 2;
  CHECK(map.settled() == now);
  map.launch(3, now, true, LEADLINE_GPU_GRAPH_LAUNCH);
  CHECK(map.get(3, CorrelationMap::Record::kWholeGraph));
  now += 1;
  CHECK(map.settled() == now);
}

TEST_CASE("a launch whose record is lost holds the watermark for a while only, and still counts as without a record") {
  Map map;
  map.launch(1, 100);
  map.launch(2, 200);
  map.get(2);
  now = CorrelationMap::kLostNs;
  CHECK(map.settled() == 100);
  now = CorrelationMap::kLostNs + 200;
  CHECK(map.settled() == now);
  CHECK(map.outstanding() == 1);
  REQUIRE(map.get(1));  // after all
  CHECK(map.outstanding() == 0);
}

TEST_CASE("work that is expected after the call holds the watermark; a call of which nothing is does not") {
  Map map;
  map.launch(1, 100, false);
  map.launch(2, 200, false);
  now = 300;
  CHECK(map.settled() == 300);
  map.expect(map.thread, 1);
  map.expect(map.thread, 1);
  CHECK(map.settled() == 100);
  CHECK(map.outstanding() == 1);
  map.get(1);
  CHECK(map.outstanding() == 0);
  CHECK(map.settled() == 300);
}

TEST_CASE("more launches without records than there is room for: the oldest are given up and counted") {
  Map map;
  const auto most = static_cast<std::uint32_t>(CorrelationMap::kMost);
  for (std::uint32_t id = 1; id <= most + 1000; ++id) {
    map.launch(id, id);
    if (id % 100'000 == 0) map.watermark();
  }
  map.watermark();
  CHECK(map.forgotten() == 1000);
  CHECK(map.outstanding() == most);
  CHECK_FALSE(map.get(1000));
  CHECK(map.get(1001));
}

TEST_CASE("what a thread writes that nobody reads for long is bounded, and what finds no room is counted") {
  LaunchLog log;
  const std::uint32_t thread = log.take();
  const std::uint64_t room = std::uint64_t{LaunchLog::kPages} * LaunchLog::kInPage;
  for (std::uint64_t i = 0; i < room + 5; ++i) log.append(thread, {.time_ns = static_cast<std::int64_t>(i)});
  CHECK(log.lost() == 5);
  std::uint64_t read = 0;
  bool in_order = true;
  log.drain([&](std::uint32_t, const LogEntry& entry) {
    in_order = in_order && entry.time_ns == static_cast<std::int64_t>(read++);
  });
  CHECK(in_order);
  CHECK(read == room);
  CHECK(log.append(thread, {}));
}

TEST_CASE("threads that end give their places to others, and more threads than there are places share one") {
  LaunchLog log;
  std::vector<std::uint32_t> places;
  for (std::uint32_t i = 0; i < LaunchLog::kThreads; ++i) places.push_back(log.take());
  CHECK(places.back() == LaunchLog::kThreads - 1);
  CHECK(log.take() == LaunchLog::kNone);
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&log] {
      for (int i = 0; i < 1000; ++i) log.append(LaunchLog::kNone, {});
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::uint64_t read = 0;
  log.drain([&](std::uint32_t thread, const LogEntry&) { read += thread == LaunchLog::kNone ? 1 : 0; });
  CHECK(read + log.lost() == 3000);
  log.give_back(5);
  CHECK(log.take() == 5);
}

TEST_CASE("concurrent launches are all found, each whole") {
  Map map;
  constexpr std::uint32_t kEach = 100'000;
  std::atomic<std::uint32_t> running{3};
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      const std::uint32_t place = map.log()->take();
      for (std::uint32_t i = 0; i < kEach; ++i) {
        const std::uint32_t id = i * 4 + t;
        map.put(id, {id * 1000ull + 1, id, place, LEADLINE_GPU_LAUNCH, 0, false}, true);
      }
      --running;
    });
  }
  std::uint64_t wrong = 0, found = 0;
  const auto ask = [&](std::uint32_t id) {
    const std::optional<Launch> launch = map.get(id);
    found += launch.has_value();
    if (launch && (launch->context != id * 1000ull + 1 || launch->start_ns != id)) ++wrong;
  };
  std::uint32_t next[3] = {};
  while (running > 0) {
    map.watermark();
    for (std::uint32_t t = 0; t < 3; ++t) {
      const std::uint64_t before = found;
      if (next[t] < kEach) ask(next[t] * 4 + t);
      if (found > before) ++next[t];
    }
  }
  for (std::thread& thread : threads) thread.join();
  for (std::uint32_t t = 0; t < 3; ++t) {
    while (next[t] < kEach) ask(next[t]++ * 4 + t);
  }
  CHECK(wrong == 0);
  CHECK(found == 3 * kEach);
  CHECK(map.outstanding() == 0);
}

TEST_CASE("a gap is split at the regions of the thread; what leads to the launch belongs to it") {
  Map map;
  map.place(map.thread, 100, 1);
  map.place(map.thread, 150, 0);
  map.place(map.thread, 170, 2);
  map.place(map.thread, 300, 3);
  map.watermark();
  Launch launch{9, 400, map.thread, LEADLINE_GPU_LAUNCH, 0, false};
  CHECK(map.parts(120, 250, launch) == Parts{{1, 30}, {2, 100}});
  CHECK(map.parts(150, 160, launch) == Parts{{9, 10}});
  CHECK(map.parts(250, 410, launch) == Parts{{2, 50}, {9, 110}});  // the launch was made in region 3
  launch.start_ns = 200;                                           // it was made in 2, and waited for something else
  CHECK(map.parts(180, 350, launch) == Parts{{2, 120}, {3, 50}});
  map.forget_places_before(170);
  CHECK(map.parts(180, 290, launch) == Parts{{9, 110}});
  launch.thread = LaunchLog::kNone;  // nobody knows
  CHECK(map.parts(180, 350, launch) == Parts{{9, 170}});
}

TEST_CASE("idle time goes to the region in which the device starved at any rate of launches") {
  constexpr std::int64_t kMs = 1'000'000;
  for (const int rate : {200, 1000, 5000, 40'000}) {
    CAPTURE(rate);
    Map map;
    std::int64_t loading = 0, elsewhere = 0;
    std::uint32_t id = 0;
    std::vector<std::pair<std::int64_t, std::int64_t>> gaps;
    std::vector<Launch> ended_by;
    now = 1'000 * kMs;
    for (int step = 0; step < 40; ++step) {  // 20 ms of loading, 80 ms of launches
      gaps.emplace_back(now, now + 20 * kMs);
      map.place(map.thread, now, 7);
      map.place(map.thread, now + 20 * kMs, 0);
      now += 20 * kMs;
      for (int i = 0; i < rate * 80 / 1000; ++i) {
        const Launch launch{9, now + 80 * kMs * i / (rate * 80 / 1000), map.thread, LEADLINE_GPU_LAUNCH, 0, false};
        map.put(++id, launch, true);
        if (i == 0) ended_by.push_back(launch);
      }
      now += 80 * kMs;
      map.watermark();
    }
    for (std::size_t i = 0; i < gaps.size(); ++i) {  // seconds later
      map.split(gaps[i].first, gaps[i].second, ended_by[i],
                [&](leadline_context context, std::int64_t ns) { (context == 7 ? loading : elsewhere) += ns; });
    }
    CHECK(loading == 40 * 20 * kMs);
    CHECK(elsewhere == 0);
  }
}

}  // namespace leadline::gpu
