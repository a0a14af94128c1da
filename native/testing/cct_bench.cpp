// Nanoseconds per operation of the structures on the path of an event. Prints one line per operation: name, ns, best of
// several rounds. A number is only comparable with others of the same run on the same machine.
//
//   cct_bench [JSON]        with the word JSON: one JSON object
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cct/memory_ledger.h"
#include "cct/tree_registry.h"
#include "collector/event_window.h"
#include "writer/snapshot.h"

namespace {

using namespace leadline;

constexpr int kRounds = 15;
constexpr std::uint32_t kOperations = 200'000;

// Keeps the compiler from dropping or merging work.
template <class T>
void use(T&& value) {
  asm volatile("" : : "g"(value) : "memory");
}

struct Result {
  std::string name;
  double ns;
};

class Bench {
 public:
  template <class F>
  void run(const std::string& name, F&& operation, std::uint32_t operations = kOperations, int rounds = kRounds) {
    double best = 1e300;
    for (int round = 0; round < rounds; ++round) {
      const std::int64_t begin = now_ns();
      for (std::uint32_t i = 0; i < operations; ++i) operation(i);
      best = std::min(best, static_cast<double>(now_ns() - begin) / operations);
    }
    results_.push_back({name, best});
  }
  void note(const std::string& name, double value) { results_.push_back({name, value}); }

  void print(bool json) const {
    if (json) std::printf("{");
    for (std::size_t i = 0; i < results_.size(); ++i) {
      const Result& result = results_[i];
      if (json) {
        std::printf("%s\"%s\": %.3f", i == 0 ? "" : ", ", result.name.c_str(), result.ns);
      } else {
        std::printf("%-36s %10.2f\n", result.name.c_str(), result.ns);
      }
    }
    std::printf(json ? "}\n" : "");
  }

 private:
  std::vector<Result> results_;
};

FrameKey frame_key(ThreadTree& tree, std::uint32_t i) {
  FrameKey key;
  key.kind = FrameKind::kPython;
  key.name = tree.string("torch.nn.modules.module.Module._call_impl" + std::to_string(i));
  key.file = tree.string("/usr/lib/python3/site-packages/torch/nn/modules/module.py");
  key.line = static_cast<std::int32_t>(i);
  return key;
}

void hot_paths(Bench& bench) {
  TreeRegistry registry(10'000'000);
  ThreadTree& tree = registry.create(1, "main");
  constexpr std::uint32_t kKeys = 1024;
  std::vector<FrameKey> keys;
  std::vector<FrameId> frames;
  std::vector<std::string> texts;
  for (std::uint32_t i = 0; i < kKeys; ++i) {
    keys.push_back(frame_key(tree, i));
    frames.push_back(tree.frame(keys.back()));
    texts.emplace_back(tree.text(keys.back().name));
  }
  bench.run("now_ns", [](std::uint32_t) { use(now_ns()); });
  bench.run("clock_gettime", [](std::uint32_t) { use(realtime_ns()); });
  bench.run("child_same", [&](std::uint32_t) { use(tree.child(tree.root(), frames[0])); });
  std::array<NodeId, 256> at{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    at[i] = tree.child(i % 8 == 0 ? tree.root() : at[i - 1], frames[i]);
  }
  // 32 call paths of 8 frames in turn: below the first frame the last child hits, at the root the table is asked.
  bench.run("child_on_32_paths_of_8",
            [&](std::uint32_t i) { use(tree.child(i % 8 == 0 ? tree.root() : at[(i - 1) % 256], frames[i % 256])); });
  bench.run("child_of_1024_siblings", [&](std::uint32_t i) { use(tree.child(tree.root(), frames[i * 7 % kKeys])); });
  const NodeId node = at[3];
  bench.run("add_one_metric", [&](std::uint32_t i) { tree.add(node, MetricKind::kTime, -1, -1, i); });
  const NodeId busy = at[4];
  bench.run("add_four_metrics_in_turn",
            [&](std::uint32_t i) { tree.add(busy, static_cast<MetricKind>(i % 4), -1, -1, i); });
  bench.run("string_of_42_bytes", [&](std::uint32_t i) { use(tree.string(texts[i % 64])); });
  bench.run("frame", [&](std::uint32_t i) { use(tree.frame(keys[i % 64])); });
  bench.run("graft", [&](std::uint32_t i) { use(tree.graft(ThreadIndex{0}, NodeId{i % 64})); });
}

void memory_and_events(Bench& bench) {
  MemoryLedger ledger;
  for (std::uint64_t i = 1; i <= 10'000; ++i) ledger.allocate(i << 20, 64, -1, ThreadIndex{0}, NodeId{1});
  bench.run("allocate_and_release", [&](std::uint32_t i) {
    const std::uint64_t address = 0x7f0000000040u + i % 512 * 0x40u;
    ledger.allocate(address, 64, -1, ThreadIndex{0}, NodeId{i % 100});
    ledger.release(address);
  });
  EventWindow window;
  window.open(100'000'000);
  EventLane& lane = window.create_lane();
  bench.run(
      "event_added", [&](std::uint32_t i) { lane.add({.start_ns = i, .duration_ns = 1}); }, kOperations, 3);
}

// The price of a new call path, and of a snapshot of many.
void growth(Bench& bench) {
  constexpr std::uint32_t kNodes = 1'000'000;
  TreeRegistry registry(2 * kNodes);
  ThreadTree& tree = registry.create(1, "main");
  std::vector<FrameId> frames;
  for (std::uint32_t i = 0; i < 1000; ++i) frames.push_back(tree.frame(frame_key(tree, i)));
  const std::size_t before = registry.held_bytes();
  std::vector<NodeId> nodes{tree.root()};
  nodes.reserve(kNodes);
  const std::int64_t begin = now_ns();
  for (std::uint32_t i = 0; nodes.size() < kNodes; ++i) {
    nodes.push_back(tree.child(nodes[i / 1000], frames[i % 1000]));
    tree.add(nodes.back(), MetricKind::kTime, -1, -1, i);
    tree.add(nodes.back(), MetricKind::kCallTime, -1, -1, i);
  }
  bench.note("new_node_with_two_metrics", static_cast<double>(now_ns() - begin) / kNodes);
  bench.note("bytes_per_node_with_two_metrics", static_cast<double>(registry.held_bytes() - before) / kNodes);
  LossCounters losses;
  const ProcessInfo process;
  const std::int64_t begin_snapshot = now_ns();
  use(take_snapshot({registry, losses, process}).nodes.parent.size());
  bench.note("snapshot_per_node", static_cast<double>(now_ns() - begin_snapshot) / kNodes);
  const std::int64_t begin_write = now_ns();
  const WriteResult written = write_segment("cct_bench.segment", {registry, losses, process});
  bench.note("segment_per_node", static_cast<double>(now_ns() - begin_write) / kNodes);
  bench.note("segment_bytes_per_node", static_cast<double>(written.bytes) / kNodes);
  std::remove("cct_bench.segment");
}

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t begin = now_ns();
  while (now_ns() - begin < 50'000'000) {  // lets the clock calibrate and the processor wake up
  }
  Bench bench;
  hot_paths(bench);
  memory_and_events(bench);
  growth(bench);
  bench.print(argc > 1 && std::strcmp(argv[1], "JSON") == 0);
  return 0;
}
