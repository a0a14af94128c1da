#include "collector/event_window.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
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
  CHECK(lane.add(at(150)));
  CHECK_FALSE(lane.add(at(250)));
  window.clear();
  CHECK_FALSE(window.covers(150));
}

TEST_CASE("Events are kept only while the window is open, and that is no loss") {
  LossCounters losses;
  EventWindow window(losses);
  EventLane& lane = window.create_lane();
  CHECK_FALSE(window.was_opened());
  CHECK_FALSE(lane.add(at(1)));
  window.open(100);
  CHECK(lane.add(at(2)));
  window.close();
  CHECK_FALSE(lane.add(at(3)));
  window.open(100);
  CHECK(lane.add(at(4)));
  CHECK(window.was_opened());
  CHECK(durations(window) == std::map<std::int64_t, std::int64_t>{{2, 1}, {4, 1}});
  CHECK(losses.total(LossKind::kEventsDropped) == 0);
}

TEST_CASE("What was taken back is told no more and leaves its room to others") {
  LossCounters losses;
  FakeClock clock(100);
  EventWindow window(losses);
  EventLane& lane = window.create_lane();
  window.open(64);
  for (std::int64_t i = 0; i < 64; ++i) CHECK(lane.add(at(100 + i)));
  clock.set(200);
  window.close();
  const std::uint64_t changes = window.changes();
  window.take_back();
  CHECK(window.changes() != changes);  // the file that holds them has to be written anew
  CHECK(durations(window).empty());
  clock.set(300);
  window.open(64);
  for (std::int64_t i = 0; i < 64; ++i) CHECK(lane.add(at(300 + i)));
  CHECK_FALSE(lane.add(at(400)));
  CHECK(durations(window).size() == 64);
  window.clear();
  CHECK(durations(window).empty());
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

TEST_CASE("A reader may look while threads add") {
  LossCounters losses;
  EventWindow window(losses);
  window.open(100'000);
  std::atomic<bool> done{false};
  std::thread writer([&] {
    EventLane& lane = window.create_lane();
    for (int i = 1; i <= 20'000; ++i) lane.add(at(i, 2 * i));
    done = true;
  });
  std::uint64_t wrong = 0;
  while (!done) {
    window.for_each_event([&](const TraceEvent& event) {
      if (event.duration_ns != 2 * event.start_ns) ++wrong;
    });
  }
  writer.join();
  CHECK(wrong == 0);
  CHECK(window.size() == 20'000);
  CHECK(window.held_bytes() >= 20'000 * sizeof(PlainEvent));
  CHECK(window.held_bytes() < 20'000 * sizeof(TraceEvent));
}

TEST_CASE("Events come back as they were given, whatever they hold") {
  constexpr std::int64_t kLong = std::int64_t{1} << 40;
  TraceEvent plain = at(1, 4'294'967'295);
  plain.tree = plain.thread = ThreadIndex{65'534};
  plain.forward_thread = ThreadIndex{0};
  plain.node = NodeId{7};
  plain.sequence = 2'147'483'647;
  plain.step = 3;
  std::vector<TraceEvent> given(15, plain);
  given[1].sequence = kLong;
  given[2].duration_ns = 4'294'967'296;
  given[3].duration_ns = -1;
  given[4].tree = ThreadIndex{1};
  given[5].tree = given[5].thread = ThreadIndex{65'535};
  given[6].forward_thread = ThreadIndex{65'535};
  given[7].correlation = 9;
  given[8].stream = 0;
  given[9].awaits = 1;
  given[10].awaits_correlation = 1;
  given[11].graph_node = 1;
  given[12].bytes = -5;  // beside the autograd number
  given[13].kind = EventKind::kAllocate;
  given[13].sequence = -1;
  given[13].bytes = -2'147'483'648;
  given[13].device = 2;
  given[14] = given[13];
  given[14].bytes = kLong;
  LossCounters losses;
  EventWindow window(losses);
  window.open(100);
  EventLane& lane = window.create_lane();
  for (std::size_t i = 0; i < given.size(); ++i) {
    given[i].start_ns = static_cast<std::int64_t>(i);
    CHECK(lane.add(given[i]));
  }
  CHECK(window.size() == given.size());
  std::size_t found = 0;
  window.for_each_event([&](const TraceEvent& event) {
    ++found;
    CHECK(event == given[static_cast<std::size_t>(event.start_ns)]);
  });
  CHECK(found == given.size());
}

namespace {

// A folder that goes away with the test.
class Folder {
 public:
  Folder() : path_(std::filesystem::temp_directory_path() / ("leadline-window-" + std::to_string(getpid()))) {
    std::filesystem::create_directories(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string file(const char* name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace

TEST_CASE("A process without steps keeps what it does while the window of the one that counts is open") {
  const Folder folder;
  LossCounters losses;
  FakeClock clock(100);
  EventWindow launcher(losses);
  EventWindow trainer(losses);
  EventWindow worker(losses);
  REQUIRE(launcher.share(folder.file("1.window"), ""));
  launcher.open(100);  // a window without a wait: open before the first step, which the launcher never ends
  REQUIRE(trainer.share(folder.file("2.window"), folder.file("1.window")));
  worker.limit(100);
  REQUIRE(worker.share(folder.file("3.window"), folder.file("2.window")));
  CHECK_FALSE(worker.is_open());
  trainer.decide();
  CHECK_FALSE(worker.was_opened());
  trainer.open(100);
  CHECK(worker.is_open());
  CHECK(worker.was_opened());
  EventLane& lane = worker.create_lane();
  CHECK(lane.add(at(150)));
  CHECK_FALSE(worker.covers(50));
  clock.set(200);
  trainer.close();
  CHECK_FALSE(worker.is_open());
  CHECK(worker.covers(150));
  CHECK_FALSE(lane.add(at(250)));
  CHECK(losses.total(LossKind::kEventsDropped) == 0);
}

TEST_CASE("Who counts steps follows nobody") {
  const Folder folder;
  LossCounters losses;
  EventWindow parent(losses);
  EventWindow child(losses);
  REQUIRE(parent.share(folder.file("1.window"), ""));
  REQUIRE(child.share(folder.file("2.window"), folder.file("1.window")));
  parent.decide();
  parent.open(100);
  CHECK(child.is_open());
  child.decide();
  CHECK_FALSE(child.is_open());
  child.open(100);
  CHECK(child.is_open());
}

TEST_CASE("A forked child follows its parent, and times that cannot be shared are said so") {
  const Folder folder;
  LossCounters losses;
  EventWindow window(losses);  // of the parent, and then of its child, as a fork copies it
  REQUIRE(window.share(folder.file("1.window"), ""));
  const SharedTimes parent = published_times(folder.file("1.window"));
  REQUIRE(parent != nullptr);
  window.after_fork();
  REQUIRE(window.share(folder.file("2.window"), ""));
  CHECK_FALSE(window.is_open());
  parent->decides.store(1);
  parent->from_ns.store(5);
  CHECK(window.is_open());
  window.clear();
  CHECK_FALSE(window.is_open());
  CHECK_FALSE(window.share(folder.file("missing/3.window"), folder.file("nobody.window")));
  CHECK_FALSE(window.is_open());
}

TEST_CASE("whoever records beside this process is told when the window opens, and nobody where nobody asked") {
  LossCounters losses;
  const Folder folder;
  EventWindow window(losses);
  window.open(10);  // to nobody
  window.close();
  window.announce_to(folder.file("missing/switch"));
  window.open(10);  // to somebody who has gone: no harm
  std::ofstream(folder.file("switch")) << "0";
  window.announce_to(folder.file("switch"));
  window.open(10);
  CHECK(std::ifstream(folder.file("switch")).get() == '1');
}
