#include "collector/sequence_ring.h"

#include <doctest/doctest.h>

#include <thread>

using namespace leadline;

TEST_CASE("the last node stored for a number is found, and for numbers that none was stored for the one before") {
  SequenceRing ring;
  CHECK(ring.find(0) == kNoNode);
  ring.store(0, NodeId{7});
  ring.store(5, NodeId{8});
  ring.store(5, NodeId{9});
  CHECK(ring.find(0) == NodeId{7});
  CHECK(ring.find(5) == NodeId{9});
  CHECK(ring.find(6) == NodeId{9});
  CHECK(ring.find(3) == NodeId{7});
  CHECK(ring.find(5 + SequenceRing::kMostNodes) == NodeId{9});
  CHECK(ring.find(6 + SequenceRing::kMostNodes) == kNoNode);
}

TEST_CASE("what was made before the first number or after an interruption is nobody's") {
  SequenceRing ring;
  ring.interrupt();
  ring.store(5, NodeId{1});
  CHECK(ring.find(4) == kNoNode);
  ring.interrupt();
  CHECK(ring.find(5) == NodeId{1});
  CHECK(ring.find(6) == kNoNode);
  ring.store(8, NodeId{2});
  CHECK(ring.find(7) == kNoNode);
  CHECK(ring.find(9) == NodeId{2});
  for (int64_t i = 1; i <= SequenceRing::kInterruptions; ++i) {
    ring.store(8 + 10 * i, NodeId{3});
    ring.interrupt();
  }
  CHECK(ring.find(9) == kNoNode);  // more interruptions than are remembered: nobody knows
  CHECK(ring.find(8) == NodeId{2});
  ring.store(400, NodeId{4});
  CHECK(ring.find(401) == NodeId{4});
  ring.clear();
  ring.store(18, NodeId{5});
  CHECK(ring.find(19) == NodeId{5});
}

TEST_CASE("an older number in the place of one that was not stored makes no larger ring") {
  SequenceRing ring;
  for (uint32_t i = 0; i < SequenceRing::kFirstSize; ++i) ring.store(i, NodeId{i});
  const size_t held = ring.held_bytes();
  ring.store(SequenceRing::kFirstSize, NodeId{1});
  CHECK(ring.find(SequenceRing::kFirstSize + 1) == NodeId{1});
  ring.store(SequenceRing::kFirstSize + 2, NodeId{2});
  CHECK(ring.held_bytes() == held);
}

TEST_CASE("a number that was overwritten is not found, and the ring grows for the next") {
  SequenceRing ring;
  for (uint32_t i = 0; i < SequenceRing::kFirstSize; ++i) ring.store(i, NodeId{i});
  CHECK(ring.find(1) == NodeId{1});  // up to here it grows by itself
  ring.store(1 + SequenceRing::kFirstSize, NodeId{2});
  CHECK(ring.find(1) == kNoNode);
  const size_t held = ring.held_bytes();
  ring.store(2 + SequenceRing::kFirstSize, NodeId{3});
  CHECK(ring.held_bytes() > held);
  ring.store(2 + 2 * SequenceRing::kFirstSize, NodeId{4});
  CHECK(ring.find(2 + SequenceRing::kFirstSize) == NodeId{3});
  CHECK(ring.find(1 + SequenceRing::kFirstSize) == NodeId{2});
}

TEST_CASE("numbers that are not looked up cost no memory") {
  SequenceRing ring;
  for (int64_t i = 0; i < 2 * SequenceRing::kFirstSize; ++i) ring.store(i, NodeId{1});
  const size_t held = ring.held_bytes();
  for (int64_t i = 0; i < 4'000'000; ++i) ring.store(i, NodeId{1});
  CHECK(ring.held_bytes() == held);
}

TEST_CASE("after clear nothing of the thread before is found") {
  SequenceRing ring;
  ring.store(3, NodeId{1});
  ring.clear();
  CHECK(ring.find(3) == kNoNode);
}

TEST_CASE("readers on other threads see what was stored or nothing") {
  SequenceRing ring;
  std::atomic<int64_t> stored{-1};
  std::thread reader([&] {
    int64_t seen = 0;
    while (seen < 99'999) {
      seen = stored.load(std::memory_order_acquire);
      if (seen < 0) continue;
      const NodeId node = ring.find(seen);
      CHECK((node == kNoNode || raw(node) == static_cast<uint32_t>(seen)));
    }
  });
  for (int64_t i = 0; i < 100'000; ++i) {
    ring.store(i, NodeId{static_cast<uint32_t>(i)});
    stored.store(i, std::memory_order_release);
  }
  reader.join();
}
