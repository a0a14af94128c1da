#include "cct/thread_tree.h"

#include <doctest/doctest.h>

#include <map>
#include <string>
#include <tuple>
#include <vector>

using namespace leadline;

namespace {

struct Fixture {
  LossCounters losses;
  NodeBudget budget{1'000'000};
  ThreadTree tree{ThreadIndex{0}, 42, "main", budget, 1'000'000, losses};

  FrameId frame(std::string_view name, int line = 0, FrameKind kind = FrameKind::kPython) {
    FrameKey key;
    key.kind = kind;
    key.name = tree.string(name);
    key.line = line;
    return tree.frame(key);
  }
  MetricValues values(NodeId node, MetricKey key) const {
    MetricValues found;
    tree.nodes().for_each_metric(node, [&](const MetricKey& at, const MetricValues& values) {
      if (at.packed() == key.packed()) found = values;
    });
    return found;
  }
};

}  // namespace

TEST_CASE("A new tree is its thread frame") {
  Fixture f;
  CHECK(f.tree.node_count() == 1);
  CHECK(f.tree.tid() == 42);
  CHECK(f.tree.name() == "main");
  CHECK(f.tree.parent(f.tree.root()) == kNoNode);
  const FrameKey& key = f.tree.frame_key(f.tree.frame_of(f.tree.root()));
  CHECK(key.kind == FrameKind::kThread);
  CHECK(f.tree.text(key.name) == "main");
}

TEST_CASE("Equal frames are one frame; every field makes a difference") {
  Fixture f;
  const FrameKey base{FrameKind::kPython, f.tree.string("f"), f.tree.string("a.py"), 3, 1, f.tree.string("m"), 7,
                      f.tree.string("{}")};
  const FrameId id = f.tree.frame(base);
  CHECK(f.tree.frame(base) == id);
  const auto differs = [&](auto change) {
    FrameKey key = base;
    change(key);
    return f.tree.frame(key) != id;
  };
  CHECK(differs([](FrameKey& key) { key.kind = FrameKind::kNative; }));
  CHECK(differs([&](FrameKey& key) { key.name = f.tree.string("g"); }));
  CHECK(differs([&](FrameKey& key) { key.file = f.tree.string("b.py"); }));
  CHECK(differs([](FrameKey& key) { key.line = 4; }));
  CHECK(differs([](FrameKey& key) { key.first_line = 2; }));
  CHECK(differs([&](FrameKey& key) { key.module = f.tree.string("n"); }));
  CHECK(differs([](FrameKey& key) { key.address = 8; }));
  CHECK(differs([&](FrameKey& key) { key.detail = f.tree.string("[]"); }));
  CHECK(f.tree.frame(base) == id);
  CHECK(f.tree.frame_key(id) == base);
}

TEST_CASE("A child is found again, whatever was asked for in between") {
  Fixture f;
  std::vector<std::tuple<NodeId, FrameId, NodeId>> made;
  std::vector<NodeId> parents{f.tree.root()};
  for (int depth = 0; depth < 4; ++depth) {
    std::vector<NodeId> next;
    for (const NodeId parent : parents) {
      for (int i = 0; i < 7; ++i) {
        const FrameId frame = f.frame("f" + std::to_string(i), i);
        next.push_back(f.tree.child(parent, frame));
        made.emplace_back(parent, frame, next.back());
        CHECK(raw(next.back()) > raw(parent));
      }
    }
    parents = next;
  }
  CHECK(f.tree.node_count() == 1 + 7 + 49 + 343 + 2401);
  CHECK(f.tree.frames().size() == 8);
  for (int round = 0; round < 2; ++round) {
    for (const auto& [parent, frame, child] : made) {
      CHECK(f.tree.child(parent, frame) == child);
      CHECK(f.tree.parent(child) == parent);
      CHECK(f.tree.frame_of(child) == frame);
    }
  }
  CHECK(f.losses.total(LossKind::kNodesDropped) == 0);
}

TEST_CASE("Measurements: count, sum, min, max, squares, apart per metric, device and stream") {
  Fixture f;
  const NodeId node = f.tree.child(f.tree.root(), f.frame("op"));
  for (const std::int64_t value : {5, -3, 10}) f.tree.add(node, MetricKind::kTime, kCpuDevice, kNoStream, value);
  f.tree.add(node, MetricKind::kGpuTime, 0, 7, 100);
  f.tree.add(node, MetricKind::kGpuTime, 0, 8, 200);
  f.tree.add(node, MetricKind::kGpuTime, 1, 7, 300);
  f.tree.add(node, MetricKind::kTime, kCpuDevice, kNoStream, 1);
  const MetricValues cpu = f.values(node, {MetricKind::kTime});
  CHECK(cpu.count == 4);
  CHECK(cpu.sum == 13);
  CHECK(cpu.min == -3);
  CHECK(cpu.max == 10);
  CHECK(cpu.sum_squares == doctest::Approx(25 + 9 + 100 + 1));
  CHECK(f.values(node, {MetricKind::kGpuTime, 0, 7}).sum == 100);
  CHECK(f.values(node, {MetricKind::kGpuTime, 0, 8}).sum == 200);
  CHECK(f.values(node, {MetricKind::kGpuTime, 1, 7}).max == 300);
  CHECK(f.values(node, {MetricKind::kSyncTime}).count == 0);
  CHECK(f.values(f.tree.root(), {MetricKind::kTime}).count == 0);
}

TEST_CASE("Merging measurements gives what adding all of them gives") {
  MetricValues left, right, all;
  for (const std::int64_t value : {4, 9, -1}) {
    left.merge(MetricValues::of(value));
    all.merge(MetricValues::of(value));
  }
  for (const std::int64_t value : {20, -7}) {
    right.merge(MetricValues::of(value));
    all.merge(MetricValues::of(value));
  }
  left.merge(right);
  left.merge(MetricValues{});
  CHECK(left.count == all.count);
  CHECK(left.sum == all.sum);
  CHECK(left.min == -7);
  CHECK(left.max == 20);
  CHECK(left.sum_squares == all.sum_squares);
}

TEST_CASE("A key survives packing, negative numbers too") {
  for (const std::int16_t device : {-1, 0, 127}) {
    for (const std::int32_t stream : {-1, 0, 7, 2'000'000'000}) {
      const MetricKey key{MetricKind::kDynamicSharedBytes, device, stream};
      const MetricKey back = MetricKey::unpack(key.packed());
      CHECK(back.metric == key.metric);
      CHECK(back.device == device);
      CHECK(back.stream == stream);
    }
  }
}

TEST_CASE("A graft is made once per target and remembers it") {
  Fixture f;
  const NodeId first = f.tree.graft(ThreadIndex{3}, NodeId{17});
  f.tree.child(first, f.frame("backward op"));
  const NodeId second = f.tree.graft(ThreadIndex{3}, NodeId{18});
  const NodeId third = f.tree.graft(ThreadIndex{4}, NodeId{17});
  CHECK(f.tree.graft(ThreadIndex{3}, NodeId{17}) == first);
  CHECK(first != second);
  CHECK(second != third);
  CHECK(f.tree.is_graft(first));
  CHECK(f.tree.parent(first) == f.tree.root());
  CHECK_FALSE(f.tree.is_graft(f.tree.root()));
  CHECK(f.tree.graft_target(third).thread == ThreadIndex{4});
  CHECK(f.tree.graft_target(third).node == NodeId{17});
  CHECK(f.tree.graft_target(second).node == NodeId{18});
  CHECK(f.tree.graft_target(f.tree.root()).thread == kNoThread);
}

TEST_CASE("Beyond the limit of nodes the parent takes over and the loss is counted") {
  LossCounters losses;
  NodeBudget budget{3};
  ThreadTree tree(ThreadIndex{0}, 1, "t", budget, 100, losses);
  const auto frame = [&](int line) {
    FrameKey key;
    key.line = line;
    return tree.frame(key);
  };
  const NodeId a = tree.child(tree.root(), frame(1));
  const NodeId b = tree.child(a, frame(2));
  const NodeId c = tree.child(b, frame(3));
  CHECK(losses.total(LossKind::kNodesDropped) == 0);
  CHECK(tree.child(c, frame(4)) == c);
  CHECK(tree.graft(ThreadIndex{0}, a) == tree.root());
  CHECK(losses.total(LossKind::kNodesDropped) == 2);
  CHECK(tree.child(a, frame(2)) == b);  // what is there is still found
  CHECK(tree.node_count() == 4);
}

TEST_CASE("Beyond the limit of frames work falls to the parent") {
  LossCounters losses;
  NodeBudget budget{100};
  ThreadTree tree(ThreadIndex{0}, 1, "t", budget, 2, losses);
  FrameKey key;
  key.line = 1;
  const NodeId a = tree.child(tree.root(), tree.frame(key));
  key.line = 2;
  CHECK(tree.frame(key) == kNoFrame);
  CHECK(tree.child(a, tree.frame(key)) == a);
  CHECK(losses.total(LossKind::kNodesDropped) == 1);
}

TEST_CASE("Own memory: look-ups that hit take none") {
  Fixture f;
  const auto work = [&] {
    for (int i = 0; i < 500; ++i) {
      const NodeId node = f.tree.child(f.tree.root(), f.frame("f" + std::to_string(i)));
      f.tree.add(node, MetricKind::kTime, kCpuDevice, kNoStream, i);
    }
  };
  const std::size_t before = f.tree.held_bytes();
  work();
  const std::size_t after = f.tree.held_bytes();
  CHECK(after > before + 500 * 50);
  for (int i = 0; i < 10; ++i) work();
  CHECK(f.tree.held_bytes() == after);
}

namespace {

std::map<std::int32_t, std::int64_t> sum_by_stream(const ThreadTree& tree, NodeId node) {
  std::map<std::int32_t, std::int64_t> sums;
  tree.nodes().for_each_metric(
      node, [&](const MetricKey& key, const MetricValues& values) { sums[key.stream] += values.sum; });
  return sums;
}

}  // namespace

TEST_CASE("Streams without end cost bounded memory and time, and nothing is lost") {
  LossCounters losses;
  NodeBudget budget(100'000);
  ThreadTree tree(ThreadIndex{0}, 1, "main", budget, 1000, losses);
  FrameKey key;
  key.line = 1;
  const NodeId node = tree.child(tree.root(), tree.frame(key));
  constexpr std::int32_t kStreams = 200'000;
  for (std::int32_t stream = 0; stream < kStreams; ++stream) {
    tree.add(node, MetricKind::kGpuTime, 0, stream, 1);
    tree.add(node, MetricKind::kGpuTime, 0, stream % 16, 1);
  }
  const auto sums = sum_by_stream(tree, node);
  std::int64_t all = 0;
  for (const auto& [stream, sum] : sums) all += sum;
  CHECK(all == 2 * kStreams);
  CHECK(sums.size() <= 513);
  CHECK(sums.at(15) == kStreams / 16 + 1);
  CHECK(sums.at(kNoStream) > 0);
  CHECK(losses.total(LossKind::kStreamsFolded) == static_cast<std::uint64_t>(sums.at(kNoStream)));
  CHECK(tree.held_bytes() < 1'000'000);
}

TEST_CASE("When the room for accumulators is used up, measurements are kept above") {
  LossCounters losses;
  NodeBudget budget(10);
  ThreadTree tree(ThreadIndex{0}, 1, "main", budget, 1000, losses);
  NodeId node = tree.root();
  for (int line = 1; line <= 10; ++line) {
    FrameKey key;
    key.line = line;
    node = tree.child(node, tree.frame(key));
  }
  constexpr std::int16_t kDevices = 100;
  for (std::int16_t device = 0; device < kDevices; ++device) tree.add(node, MetricKind::kGpuTime, device, 3, 7);
  std::int64_t all = 0;
  for (std::uint32_t at = 0; at < tree.node_count(); ++at) {
    for (const auto& [stream, sum] : sum_by_stream(tree, NodeId{at})) all += sum;
  }
  CHECK(all == kDevices * 7);
  CHECK(losses.total(LossKind::kNodesDropped) == kDevices - 10 * NodeBudget::kAccumulatorsPerNode);
}
