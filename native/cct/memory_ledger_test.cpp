#include "cct/memory_ledger.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <random>
#include <thread>
#include <tuple>
#include <vector>

#include "cct/block_map.h"

using namespace leadline;

namespace {

using Shares = std::map<std::tuple<std::int16_t, std::uint32_t, std::uint32_t>, std::int64_t>;

Shares shares_of(MemoryLedger& ledger) {
  Shares shares;
  for (const PeakShare& share : ledger.peak_shares()) {
    shares[{share.device, raw(share.thread), raw(share.node)}] = share.bytes;
  }
  return shares;
}

constexpr ThreadIndex kThread{0};

}  // namespace

TEST_CASE("Who owned the memory at the peak, not now and not in all") {
  LossCounters losses;
  MemoryLedger ledger(losses);
  ledger.allocate(0x10, 100, kCpuDevice, kThread, NodeId{1});
  ledger.allocate(0x20, 50, kCpuDevice, kThread, NodeId{2});
  CHECK(ledger.release(0x10) == 100);
  ledger.allocate(0x30, 70, kCpuDevice, kThread, NodeId{3});  // 120 live: less than the 150 before
  CHECK(shares_of(ledger) == Shares{{{-1, 0, 1}, 100}, {{-1, 0, 2}, 50}});
  ledger.allocate(0x40, 40, kCpuDevice, kThread, NodeId{3});  // 160: a new peak without node 1
  CHECK(ledger.release(0x20) == 50);
  CHECK(shares_of(ledger) == Shares{{{-1, 0, 2}, 50}, {{-1, 0, 3}, 110}});
  const auto devices = ledger.devices();
  REQUIRE(devices.size() == 1);
  CHECK(devices[0].live_bytes == 110);
  CHECK(devices[0].peak_bytes == 160);
  CHECK(ledger.live_blocks() == 2);
}

TEST_CASE("Devices peak apart") {
  LossCounters losses;
  MemoryLedger ledger(losses);
  ledger.allocate(0x10, 10, 0, kThread, NodeId{1});
  ledger.allocate(0x20, 20, 1, kThread, NodeId{1});
  ledger.release(0x10);
  ledger.allocate(0x30, 5, 1, ThreadIndex{2}, NodeId{1});
  CHECK(shares_of(ledger) == Shares{{{0, 0, 1}, 10}, {{1, 0, 1}, 20}, {{1, 2, 1}, 5}});
}

TEST_CASE("Any number of devices") {
  LossCounters losses;
  MemoryLedger ledger(losses);
  for (std::int16_t device = 0; device < 1000; ++device) {
    ledger.allocate(0x1000u + static_cast<std::uint64_t>(device), device + 1, device, kThread, NodeId{1});
  }
  ledger.allocate(0x10, 1, std::numeric_limits<std::int16_t>::max(), kThread, NodeId{2});
  CHECK(shares_of(ledger).size() == 1001);
  CHECK(ledger.devices().size() == 1001);
  CHECK(ledger.devices().back().peak_bytes == 1);
  CHECK(losses.total(LossKind::kMemoryEventsDropped) == 0);
}

TEST_CASE("Unknown, repeated and empty addresses") {
  LossCounters losses;
  MemoryLedger ledger(losses);
  CHECK(ledger.release(0x99) == MemoryLedger::kUnknownBytes);
  CHECK(losses.total(LossKind::kFreeUnknown) == 1);
  ledger.allocate(0, 10, kCpuDevice, kThread, NodeId{1});
  CHECK(ledger.release(0) == 0);
  CHECK(ledger.live_blocks() == 0);
  ledger.allocate(0x10, 10, kCpuDevice, kThread, NodeId{1});
  ledger.allocate(0x10, 30, kCpuDevice, kThread, NodeId{2});  // its release was not seen
  CHECK(ledger.live_blocks() == 1);
  CHECK(ledger.release(0x10) == 30);
  CHECK(ledger.devices()[0].live_bytes == 0);
  CHECK(ledger.devices()[0].peak_bytes == 30);
  ledger.allocate(0x20, 10, kCpuDevice - 1, kThread, NodeId{1});
  CHECK(losses.total(LossKind::kMemoryEventsDropped) == 1);
  ledger.allocate(0x30, 0, kCpuDevice, kThread, NodeId{1});
  CHECK(ledger.release(0x30) == 0);
  CHECK(losses.total(LossKind::kFreeUnknown) == 1);
}

TEST_CASE("A cleared ledger knows nothing and peaks anew") {
  LossCounters losses;
  MemoryLedger ledger(losses);
  ledger.allocate(0x10, 1000, kCpuDevice, kThread, NodeId{1});
  ledger.clear();
  CHECK(ledger.live_blocks() == 0);
  CHECK(ledger.peak_shares().empty());
  ledger.allocate(0x10, 10, kCpuDevice, kThread, NodeId{2});
  CHECK(shares_of(ledger) == Shares{{{-1, 0, 2}, 10}});
}

// Fewer events than the queue has room for, so that nothing may be lost whoever is suspended when.
TEST_CASE("Threads that allocate at once lose nothing and keep their order") {
  constexpr std::uint64_t kRounds = 500;
  static_assert(4 * (2 * kRounds + 1) < MemoryLedger::kQueueEvents);
  for (int repetition = 0; repetition < 40; ++repetition) {
    LossCounters losses;
    MemoryLedger ledger(losses);
    std::vector<std::thread> threads;
    for (std::uint32_t t = 0; t < 4; ++t) {
      threads.emplace_back([&ledger, t] {
        for (std::uint64_t i = 0; i < kRounds; ++i) {
          // An address is used again at once: its release must never be booked after the next allocation.
          const std::uint64_t address = 0x1000 + t * 0x100 + i % 3 * 0x10;
          ledger.allocate(address, 8, kCpuDevice, ThreadIndex{t}, NodeId{1});
          ledger.release(address);
        }
        ledger.allocate(0x9000 + t, 1, kCpuDevice, ThreadIndex{t}, NodeId{2});
      });
    }
    for (auto& thread : threads) thread.join();
    CHECK(ledger.live_blocks() == 4);
    CHECK(ledger.devices()[0].live_bytes == 4);
    CHECK(ledger.devices()[0].peak_bytes >= 8);
    CHECK(ledger.devices()[0].peak_bytes <= 32);
    CHECK(losses.total(LossKind::kMemoryEventsDropped) == 0);
    CHECK(losses.total(LossKind::kFreeUnknown) == 0);
  }
}

TEST_CASE("Blocks handed from thread to thread through reused addresses are booked in order") {
  // One address travels round: whoever holds the token releases it and allocates it again, as a caching allocator does.
  constexpr std::uint32_t kTurns = 600;
  constexpr std::uint32_t kNoise = 400;
  static_assert(2 * kTurns + 2 * 3 * kNoise < MemoryLedger::kQueueEvents);
  for (int repetition = 0; repetition < 20; ++repetition) {
    LossCounters losses;
    MemoryLedger ledger(losses);
    std::atomic<std::uint32_t> token{0};
    ledger.allocate(0x10, 1, kCpuDevice, ThreadIndex{0}, NodeId{0});
    std::vector<std::thread> threads;
    for (std::uint32_t t = 0; t < 3; ++t) {
      threads.emplace_back([&, t] {
        for (std::uint32_t other = 0;; ++other) {
          const std::uint32_t turn = token.load(std::memory_order_acquire);
          if (turn >= kTurns) return;
          if (turn % 3 == t) {
            ledger.release(0x10);
            ledger.allocate(0x10, turn + 1, kCpuDevice, ThreadIndex{t}, NodeId{0});
            token.store(turn + 1, std::memory_order_release);
          } else if (other < kNoise) {  // keep the ledger busy meanwhile
            ledger.allocate(0x1000 * (t + 1) + other % 64, 1, kCpuDevice, ThreadIndex{t}, NodeId{1});
            ledger.release(0x1000 * (t + 1) + other % 64);
          } else {
            std::this_thread::yield();
          }
        }
      });
    }
    for (auto& thread : threads) thread.join();
    CHECK(losses.total(LossKind::kMemoryEventsDropped) == 0);
    CHECK(losses.total(LossKind::kFreeUnknown) == 0);
    CHECK(ledger.live_blocks() == 1);
    CHECK(ledger.devices()[0].live_bytes == kTurns);
  }
}

TEST_CASE("Whatever the contention, an allocation is either booked or counted as lost") {
  LossCounters losses;
  MemoryLedger ledger(losses);
  constexpr std::uint64_t kBlocks = 30'000;
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&ledger, t] {
      for (std::uint64_t i = 0; i < kBlocks; ++i) {
        ledger.allocate((t + std::uint64_t{1}) << 32 | (i + 1), 2, kCpuDevice, ThreadIndex{t}, NodeId{1});
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(ledger.live_blocks() + losses.total(LossKind::kMemoryEventsDropped) == 4 * kBlocks);
  CHECK(ledger.devices()[0].peak_bytes == static_cast<std::int64_t>(2 * ledger.live_blocks()));
  MESSAGE("lost ", losses.total(LossKind::kMemoryEventsDropped), " of ", 4 * kBlocks);
}

TEST_CASE("BlockMap agrees with std::map through a long random life") {
  BlockMap map;
  std::map<std::uint64_t, std::int64_t> expected;
  std::mt19937_64 random(7);
  for (int i = 0; i < 200'000; ++i) {
    const std::uint64_t address = 64 * (1 + random() % 3000);
    BlockMap::Block block;
    const auto known = expected.find(address);
    const bool taken = map.take(address, block);
    REQUIRE(taken == (known != expected.end()));
    if (taken) {
      CHECK(block.bytes == known->second);
      expected.erase(known);
    } else {
      REQUIRE(map.insert({address, i, 0}));
      expected[address] = i;
    }
    REQUIRE(map.size() == expected.size());
  }
}

TEST_CASE("A free of unknown size that had to wait is booked where it happened") {
  LossCounters losses;
  MemoryLedger ledger(losses);
  for (std::uint64_t block = 1; block <= 3; ++block) {
    ledger.allocate(block * 0x100, static_cast<std::int64_t>(block) * 10, 0, kThread, NodeId{1});
  }
  {
    const MemoryLedger::Hold writing(ledger);
    CHECK(ledger.release(0x100, 0, ThreadIndex{4}, NodeId{7}) == MemoryLedger::kLater);
    CHECK(ledger.release(0x200, 0, ThreadIndex{4}, NodeId{7}) == MemoryLedger::kLater);
    CHECK(ledger.release(0x300) == MemoryLedger::kLater);  // its caller knows the size
  }
  const std::vector<FreedLater> freed = ledger.freed_later();
  REQUIRE(freed.size() == 1);
  CHECK(freed[0].device == 0);
  CHECK(freed[0].thread == ThreadIndex{4});
  CHECK(freed[0].node == NodeId{7});
  CHECK(freed[0].bytes.count == 2);
  CHECK(freed[0].bytes.sum == 30);
  CHECK(ledger.live_blocks() == 0);
  CHECK(losses.total(LossKind::kFreeUnknown) == 0);
}

TEST_CASE("What is freed by nobody in particular is booked where it was allocated") {
  LossCounters losses;
  MemoryLedger ledger(losses);
  ledger.allocate(0x100, 10, 0, kThread, NodeId{1});
  ledger.allocate(0x200, 20, 0, kThread, NodeId{1});
  ledger.allocate(0x300, 40, 0, kThread, NodeId{2});
  CHECK(ledger.release_at_owner(0x100) == 10);
  {
    const MemoryLedger::Hold writing(ledger);
    CHECK(ledger.release_at_owner(0x200) == MemoryLedger::kLater);
  }
  CHECK(ledger.release_at_owner(0x500) == MemoryLedger::kUnknownBytes);
  const std::vector<FreedLater> freed = ledger.freed_later();
  REQUIRE(freed.size() == 1);
  CHECK(freed[0].node == NodeId{1});
  CHECK(freed[0].bytes.count == 2);
  CHECK(freed[0].bytes.sum == 30);
  CHECK(ledger.live_blocks() == 1);
  CHECK(losses.total(LossKind::kFreeUnknown) == 1);
}

TEST_CASE("The block that an address lies in") {
  LossCounters losses;
  MemoryLedger ledger(losses);
  ledger.allocate(0x1000, 0x100, 0, kThread, NodeId{1});
  ledger.allocate(0x1100, 0x80, 1, kThread, NodeId{2});
  ledger.allocate(0x3000, 1, kCpuDevice, ThreadIndex{5}, NodeId{3});
  ledger.allocate(0x2000, 0, kCpuDevice, kThread, NodeId{4});
  const LiveRanges ranges = ledger.live_ranges();
  const std::uint64_t taken = ledger.changes();
  const auto node_at = [&](std::uint64_t address) {
    const LiveRange* range = ranges.find(address);
    return range == nullptr ? kNoNode : range->node;
  };
  CHECK(node_at(0xfff) == kNoNode);
  CHECK(node_at(0x1000) == NodeId{1});
  CHECK(node_at(0x10ff) == NodeId{1});
  CHECK(node_at(0x1100) == NodeId{2});
  CHECK(node_at(0x117f) == NodeId{2});
  CHECK(node_at(0x1180) == kNoNode);
  CHECK(node_at(0x2000) == kNoNode);
  CHECK(node_at(0x3000) == NodeId{3});
  CHECK(node_at(~std::uint64_t{0}) == kNoNode);
  CHECK(ranges.find(0x1100)->device == 1);
  CHECK(ranges.find(0x3000)->thread == ThreadIndex{5});
  CHECK(ledger.changes() == taken);
  ledger.release(0x1000);
  CHECK(ledger.changes() != taken);
  CHECK(LiveRanges().find(1) == nullptr);
}
