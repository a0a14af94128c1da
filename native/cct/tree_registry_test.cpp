#include "cct/tree_registry.h"

#include <doctest/doctest.h>

#include <string>
#include <thread>
#include <vector>

using namespace leadline;

TEST_CASE("Trees are numbered in order of creation and found by number") {
  LossCounters losses;
  TreeRegistry registry(1000, losses);
  ThreadTree& a = registry.create(11, "main");
  ThreadTree& b = registry.create(12, "worker");
  CHECK(a.index() == ThreadIndex{0});
  CHECK(&registry[ThreadIndex{1}] == &b);
  std::vector<std::uint64_t> seen;
  registry.for_each([&](const ThreadTree& tree) { seen.push_back(tree.tid()); });
  CHECK(seen == std::vector<std::uint64_t>{11, 12});
  CHECK(registry.node_count() == 2);
  CHECK(registry.held_bytes() > a.held_bytes());
}

TEST_CASE("The limit of nodes holds for all threads together") {
  LossCounters losses;
  TreeRegistry registry(10, losses);
  for (std::uint64_t t = 0; t < 3; ++t) {
    ThreadTree& tree = registry.create(t, "t");
    for (int line = 1; line <= 5; ++line) {
      FrameKey key;
      key.line = line;
      tree.child(tree.root(), tree.frame(key));
    }
  }
  CHECK(registry.node_count() == 3 + 10);
  CHECK(losses.total(LossKind::kNodesDropped) == 5);
}

TEST_CASE("Threads without end do not take memory without end") {
  LossCounters losses;
  TreeRegistry registry(1000, losses);
  for (std::uint64_t tid = 1; tid <= 5000; ++tid) {
    ThreadTree& tree = registry.create(tid, tid % 2 == 0 ? "even" : "odd");
    CHECK(tree.tid() == tid);
    CHECK(tree.name() == (tid % 2 == 0 ? "even" : "odd"));
    registry.retire(tree);
  }
  CHECK(registry.size() == TreeRegistry::kDistinctThreads);
}

TEST_CASE("A tree in use is never given to a second thread") {
  LossCounters losses;
  TreeRegistry registry(1000, losses);
  for (std::uint64_t tid = 1; tid <= 300; ++tid) registry.create(tid, "alive");
  CHECK(registry.size() == 300);
}

TEST_CASE("Threads may register at the same time, and a reader may look on") {
  LossCounters losses;
  TreeRegistry registry(100'000, losses);
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&registry, t] {
      for (std::uint64_t i = 0; i < 50; ++i) registry.create(t * 100 + i, "thread");
    });
  }
  std::uint64_t nodes = 0;
  while (nodes < 200) nodes = registry.node_count();
  for (auto& thread : threads) thread.join();
  CHECK(registry.size() == 200);
  std::uint32_t next = 0;
  registry.for_each([&](const ThreadTree& tree) { CHECK(raw(tree.index()) == next++); });
}

TEST_CASE("A cleared registry begins again with its whole limit") {
  LossCounters losses;
  TreeRegistry registry(1, losses);
  FrameKey key;
  key.line = 1;
  ThreadTree& before = registry.create(1, "a");
  before.child(before.root(), before.frame(key));
  registry.clear();
  CHECK(registry.size() == 0);
  ThreadTree& after = registry.create(2, "b");
  CHECK(after.index() == ThreadIndex{0});
  CHECK(after.child(after.root(), after.frame(key)) != after.root());
  CHECK(losses.total(LossKind::kNodesDropped) == 0);
}

TEST_CASE("Threads that are numbered share trees, and beyond a limit all ended ones do") {
  LossCounters losses;
  TreeRegistry registry(100'000, losses);
  for (std::uint64_t tid = 1; tid <= 5000; ++tid) {
    ThreadTree& tree = registry.create(tid, "Thread-" + std::to_string(tid) + " (work)");
    registry.retire(tree);
  }
  CHECK(registry.size() == TreeRegistry::kDistinctThreads);
  CHECK(registry[ThreadIndex{0}].name() == "Thread-# (work)");
  for (std::uint64_t tid = 1; tid <= 5000; ++tid) {
    std::string name;
    for (std::uint64_t rest = tid; rest > 0; rest /= 10) name += static_cast<char>('a' + rest % 10);
    registry.retire(registry.create(tid, name));
  }
  CHECK(registry.size() == TreeRegistry::kMostThreads);
}
