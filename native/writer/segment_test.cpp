// What only C++ can say about segments: failures, threads that write meanwhile. What is inside a segment is compared
// with a slow reference by tests/cct.
#include "writer/segment.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <vector>

#include "testing/failing_allocator.h"
#include "writer/snapshot.h"

using namespace leadline;

namespace {

class Folder {
 public:
  Folder() {
    char name[] = "/tmp/leadline_segment_XXXXXX";
    REQUIRE(mkdtemp(name) != nullptr);
    path_ = name;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator(path_), std::filesystem::directory_iterator()));
  }

 private:
  std::string path_;
};

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

struct Fixture {
  LossCounters losses;
  TreeRegistry registry{1'000'000, losses};
  ProcessInfo process{7, 1, -1, -1, "train.py", 100, 200, true};
  SegmentSources sources{registry, losses, process};

  void measure() {
    ThreadTree& tree = registry.create(1, "main");
    for (int line = 1; line <= 200; ++line) {
      FrameKey key;
      key.line = line;
      tree.add(tree.child(tree.root(), tree.frame(key)), MetricKind::kTime, kCpuDevice, kNoStream, line);
    }
  }
};

class Events final : public TraceEventSource {
 public:
  bool was_opened() const noexcept override { return opened; }
  std::uint64_t changes() const noexcept override { return events.size() + ended; }
  TraceEventExtent extent() const override { return {0, {static_cast<std::uint32_t>(events.size())}}; }
  void for_each_of(const TraceEventExtent& extent, const std::function<void(const TraceEvent&)>& f) const override {
    for (std::uint32_t i = 0; i < extent.counts[0]; ++i) f(events[i]);
  }
  void add(const ThreadTree& tree, std::int64_t start_ns) {
    TraceEvent event;
    event.start_ns = start_ns;
    event.tree = event.thread = tree.index();
    event.node = NodeId{tree.node_count() - 1};
    events.push_back(event);
  }
  bool opened = true;
  std::uint64_t ended = 0;
  std::vector<TraceEvent> events;
};

std::uint64_t inode(const std::string& path) {
  struct stat found {};
  return stat(path.c_str(), &found) == 0 ? found.st_ino : 0;
}

}  // namespace

TEST_CASE("The same measurements give the same bytes, and nothing else stays in the folder") {
  const Folder folder;
  Fixture f;
  f.measure();
  const WriteResult result = write_segment(folder.file("a.segment"), f.sources);
  CHECK(result);
  CHECK(result.nodes == 2 + 1 + 200);
  CHECK(describe(result, "x").empty());
  const std::string first = content(folder.file("a.segment"));
  CHECK(first.size() == result.bytes);
  CHECK(write_segment(folder.file("a.segment"), f.sources));
  CHECK(content(folder.file("a.segment")) == first);
  CHECK(folder.files() == 1);
}

TEST_CASE("A folder that does not exist is an error, one sentence and a loss") {
  const Folder folder;
  Fixture f;
  const std::string path = folder.file("missing/a.segment");
  const WriteResult result = write_segment(path, f.sources);
  CHECK(result.error == WriteError::kOpen);
  CHECK(result.system_errno == ENOENT);
  CHECK(describe(result, path).find("could not be created") != std::string::npos);
  CHECK(f.losses.total(LossKind::kWriteFailed) == 1);
  CHECK(f.losses.detail(LossKind::kWriteFailed) == describe(result, path));
}

TEST_CASE("A segment that cannot take its place leaves no rest behind") {
  const Folder folder;
  Fixture f;
  std::filesystem::create_directories(folder.file("a.segment/in the way"));
  const WriteResult result = write_segment(folder.file("a.segment"), f.sources);
  CHECK(result.error == WriteError::kRename);
  CHECK(folder.files() == 1);
}

TEST_CASE("When there is no room the segment before stays and the program goes on") {
  const Folder folder;
  Fixture f;
  const std::string path = folder.file("a.segment");
  CHECK(write_segment(path, f.sources));
  const std::string before = content(path);
  f.measure();
  rlimit old{};
  REQUIRE(getrlimit(RLIMIT_FSIZE, &old) == 0);
  const rlimit tight{4096, old.rlim_max};
  REQUIRE(setrlimit(RLIMIT_FSIZE, &tight) == 0);
  const WriteResult result = write_segment(path, f.sources);
  REQUIRE(setrlimit(RLIMIT_FSIZE, &old) == 0);
  CHECK(result.error == WriteError::kWrite);
  CHECK(result.system_errno == EFBIG);
  CHECK(describe(result, path).find("make room") != std::string::npos);
  CHECK(content(path) == before);
  CHECK(folder.files() == 1);
  sigset_t pending;
  sigpending(&pending);
  CHECK(sigismember(&pending, SIGXFSZ) == 0);
  CHECK(write_segment(path, f.sources));
  CHECK(content(path).size() > before.size());
}

TEST_CASE("Losses, threads and a broken graft are in the tables") {
  Fixture f;
  f.measure();
  ThreadTree& tree = f.registry[ThreadIndex{0}];
  tree.graft(ThreadIndex{5}, NodeId{5});
  tree.stats().first_ns.store(50);
  tree.stats().last_ns.store(80);
  tree.stats().cpu_ns.store(20);
  f.losses.count(LossKind::kEventsDropped, 3, "why");
  f.losses.count(LossKind::kEventsDropped, 2, "why else");
  f.losses.count(LossKind::kInternalError, 4, "and this");
  const Snapshot snapshot = take_snapshot(f.sources);
  const auto dropped = static_cast<std::uint8_t>(LossKind::kEventsDropped);
  const auto error = static_cast<std::uint8_t>(LossKind::kInternalError);
  CHECK(snapshot.losses.kind == std::vector<std::uint8_t>{dropped, dropped, error, error});
  CHECK(snapshot.losses.count == std::vector<std::uint64_t>{3, 2, 4, 1});
  CHECK(std::ranges::count(snapshot.losses.detail, 0U) == 0);  // each has its sentence
  REQUIRE(snapshot.threads.tid.size() == 1);
  CHECK(snapshot.threads.wall_ns[0] == 30);
  CHECK(snapshot.threads.cpu_ns[0] == 20);
  CHECK_FALSE(snapshot.events.has_value());
  CHECK(snapshot.nodes.parent[0] == -1);
  CHECK(snapshot.nodes.parent[1] == 0);
}

namespace {

// One thread's work while segments are written: new call paths, grafts into another tree, memory. Returns the steps
// made.
std::uint64_t work(TreeRegistry& registry, MemoryLedger& ledger, std::uint32_t number, const std::atomic<bool>& stop) {
  ThreadTree& tree = registry.create(number, "worker");
  const ThreadIndex other{raw(tree.index()) == 0 ? 0 : raw(tree.index()) - 1};
  std::uint32_t step = 0;
  for (; step < 2'000 || !stop; ++step) {
    FrameKey key;
    key.kind = FrameKind::kPython;
    key.name = tree.string("function " + std::to_string(step % 1'000));
    const NodeId outer = tree.child(tree.root(), tree.frame(key));
    const NodeId inner = tree.child(step % 2 == 0 ? outer : tree.graft(other, NodeId{step % 3}), tree.frame(key));
    tree.add(inner, MetricKind::kTime, kCpuDevice, kNoStream, 1);
    tree.add(inner, MetricKind::kAllocBytes, kCpuDevice, static_cast<std::int32_t>(step % 4), 2);
    tree.stats().last_ns.store(step, std::memory_order_relaxed);
    const std::uint64_t address = number * std::uint64_t{100} + step % 50 + 1;
    ledger.allocate(address, 64, kCpuDevice, tree.index(), inner);
    if (step % 3 == 0) ledger.release(address);
  }
  return step;
}

std::uint64_t measured_steps(const Snapshot& snapshot) {
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < snapshot.metrics.metric.size(); ++i) {
    if (snapshot.metrics.metric[i] == static_cast<std::uint8_t>(MetricKind::kTime)) count += snapshot.metrics.count[i];
  }
  return count;
}

void check_references(const Snapshot& snapshot) {
  std::size_t wrong = 0;
  for (std::size_t i = 1; i < snapshot.nodes.parent.size(); ++i) {
    const std::int32_t parent = snapshot.nodes.parent[i];
    if (parent < 0 || parent >= static_cast<std::int32_t>(i)) ++wrong;
    if (snapshot.nodes.frame[i] >= snapshot.frames.kind.size()) ++wrong;
  }
  for (const std::uint32_t name : snapshot.frames.name) wrong += name + 1 >= snapshot.strings.offsets.size() ? 1 : 0;
  for (const std::uint32_t node : snapshot.metrics.node) wrong += node >= snapshot.nodes.parent.size() ? 1 : 0;
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("Segments are whole while threads measure, and the last one has everything") {
  constexpr std::uint32_t kThreads = 4;
  const Folder folder;
  LossCounters losses;
  TreeRegistry registry(1'000'000, losses);
  MemoryLedger ledger(losses);
  const ProcessInfo process{7, 1, -1, -1, "train.py", 100, 200, false};
  const SegmentSources sources{registry, losses, process, &ledger};
  SegmentWriter writer;
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> steps{0};
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] { steps.fetch_add(work(registry, ledger, t, stop)); });
  }
  std::uint64_t before = 0;
  for (int i = 0; i < 4; ++i) {
    const Snapshot snapshot = take_snapshot(sources);
    check_references(snapshot);
    const std::uint64_t now = measured_steps(snapshot);
    CHECK(now >= before);
    before = now;
    CHECK(write_segment(folder.file("a.segment"), sources));
    CHECK(writer.write(folder.file("b.segment"), sources, false));
  }
  stop = true;
  for (auto& thread : threads) thread.join();
  const Snapshot last = take_snapshot(sources);
  check_references(last);
  CHECK(measured_steps(last) == steps);
  CHECK(last.threads.tid.size() == kThreads);
  CHECK(losses.total(LossKind::kWriteFailed) == 0);
}

TEST_CASE("The events of a window that has closed are not written again, and the last segment holds them") {
  const Folder folder;
  Fixture f;
  f.measure();
  Events events;
  f.sources.events = &events;
  for (int i = 0; i < 10'000; ++i) events.add(f.registry[ThreadIndex{0}], i);
  const std::string path = folder.file("a.segment");
  const std::string beside = folder.file("a.events");
  CHECK(events_path(path) == beside);
  SegmentWriter writer;
  const WriteResult first = writer.write(path, f.sources, false);
  REQUIRE(first);
  CHECK(first.bytes == content(path).size() + content(beside).size());
  const std::string written = content(beside);
  CHECK(written.size() > 10'000 * sizeof(std::int64_t));
  const std::uint64_t file = inode(beside);
  for (int flush = 0; flush < 3; ++flush) {
    f.measure();
    const WriteResult next = writer.write(path, f.sources, false);
    REQUIRE(next);
    CHECK(next.bytes == content(path).size());
    CHECK(next.bytes < first.bytes / 4);
    CHECK(inode(beside) == file);
  }
  events.events[0].duration_ns = 5;
  ++events.ended;
  CHECK(writer.write(path, f.sources, false));
  CHECK(content(beside) != written);
  CHECK(content(beside).size() == written.size());
  const WriteResult last = writer.write(path, f.sources, true);
  CHECK(last.bytes > first.bytes);
  CHECK(folder.files() == 1);
  CHECK(content(path).find("events.start_ns.npy") != std::string::npos);
}

TEST_CASE("A large window is written without being in memory once more") {
  constexpr std::int64_t kEvents = 100'000;
  constexpr std::int64_t kBytes = 24;  // of an event: two numbers of 32 bits, and 8 bytes of one column twice at most
  const Folder folder;
  Fixture f;
  f.measure();
  Events events;
  f.sources.events = &events;
  for (std::int64_t i = 0; i < kEvents; ++i) events.add(f.registry[ThreadIndex{0}], kEvents - i);
  SegmentWriter writer;
  const std::int64_t before = testing::t_allocations.bytes;
  testing::t_allocations.most_bytes = before;
  REQUIRE(writer.write(folder.file("a.segment"), f.sources, false));
  CHECK(testing::t_allocations.most_bytes - before < kEvents * kBytes + 1'000'000);
}

TEST_CASE("Events that come while a window is written are not of its table") {
  Fixture f;
  f.measure();
  Events events;
  f.sources.events = &events;
  ThreadTree& tree = f.registry[ThreadIndex{0}];
  for (const std::int64_t start_ns : {30, 10, 20}) events.add(tree, start_ns);
  const Snapshot snapshot = take_snapshot(f.sources);
  std::vector<std::size_t> rows;
  std::vector<std::int64_t> starts;
  snapshot.events->for_each_column([&](std::string_view name, const auto& values) {
    rows.push_back(values.size());
    if constexpr (std::is_same_v<const std::vector<std::int64_t>&, decltype(values)>) {
      if (name == "start_ns") starts = values;
    }
    events.add(f.registry.create(static_cast<std::uint32_t>(rows.size()) + 1, "late"), 5);
  });
  CHECK(starts == std::vector<std::int64_t>{10, 20, 30});
  CHECK(rows == std::vector<std::size_t>(15, 3));
}

TEST_CASE("Events that cannot be written leave the earlier ones, and come when there is room") {
  const Folder folder;
  Fixture f;
  f.measure();
  Events events;
  f.sources.events = &events;
  events.add(f.registry[ThreadIndex{0}], 1);
  const std::string path = folder.file("a.segment");
  const std::string beside = folder.file("a.events");
  SegmentWriter writer;
  REQUIRE(writer.write(path, f.sources, false));
  const std::string earlier = content(beside);
  events.add(f.registry[ThreadIndex{0}], 2);
  std::filesystem::create_directories(beside + ".tmp");
  CHECK_FALSE(writer.write(path, f.sources, false));
  CHECK(f.losses.total(LossKind::kWriteFailed) == 1);
  CHECK(content(beside) == earlier);
  std::filesystem::remove(beside + ".tmp");
  CHECK(writer.write(path, f.sources, false));
  CHECK(content(beside).size() > earlier.size());
}

TEST_CASE("A writer that begins anew takes away the events of the one before") {
  const Folder folder;
  Fixture f;
  f.measure();
  Events events;
  f.sources.events = &events;
  events.add(f.registry[ThreadIndex{0}], 1);
  const std::string path = folder.file("a.segment");
  SegmentWriter writer;
  REQUIRE(writer.write(path, f.sources, false));
  writer.clear();
  CHECK(writer.held_bytes() == 0);
  events.opened = false;
  REQUIRE(writer.write(path, f.sources, false));
  CHECK(folder.files() == 1);
  CHECK(writer.held_bytes() > 0);
}
