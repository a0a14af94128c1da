// What callbacks write and the fold reads: correlation map, marks, queue depth, buffers.
#include <doctest/doctest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "gpu/buffer_pool.h"
#include "gpu/correlation_map.h"
#include "gpu/graph_map.h"
#include "gpu/host_memory.h"
#include "gpu/marks.h"
#include "gpu/stream_queue.h"

namespace leadline::gpu {
namespace {

Launch launch(leadline_context context) { return {context, 0, 0, LEADLINE_GPU_LAUNCH, 0, false}; }

}  // namespace

TEST_CASE("a launch is found by its id, long-running ones even after the ring has gone round") {
  CorrelationMap map;
  map.put(7, launch(70), true);
  for (std::uint32_t id = 8; id < 7 + CorrelationMap::kSlots; ++id) map.put(id, launch(1), false);
  CHECK(map.outstanding() == 1);
  map.put(7 + CorrelationMap::kSlots, launch(71), true);
  REQUIRE(map.get(7));
  CHECK(map.get(7 + CorrelationMap::kSlots)->context == 71);
  CHECK(map.outstanding() == 0);
  CHECK(map.forgotten() == 0);
  CHECK_FALSE(map.get(7));  // the overflow entry was its only copy, and its record has come
  CHECK_FALSE(map.get(999'999'999));
}

TEST_CASE("a graph launch answers for each of its nodes and is outstanding until the first") {
  CorrelationMap map;
  map.put(5, {50, 0, 0, LEADLINE_GPU_GRAPH_LAUNCH, 0, false}, true);
  CHECK(map.outstanding() == 1);
  for (int node = 0; node < 3; ++node) CHECK(map.get(5)->context == 50);
  CHECK(map.outstanding() == 0);
  map.put(6, launch(60), true);
  map.cancel(6);
  CHECK(map.outstanding() == 0);
}

TEST_CASE("concurrent launches and look-ups never mix entries") {
  CorrelationMap map;
  constexpr std::uint32_t kEach = 200'000;
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < 3; ++t) {
    threads.emplace_back([&map, t] {
      for (std::uint32_t i = 0; i < kEach; ++i) {
        const std::uint32_t id = i * 4 + t;
        map.put(id, {id * 1000ull + 1, id, t, LEADLINE_GPU_LAUNCH, 0, false}, true);
      }
    });
  }
  std::uint64_t wrong = 0;
  std::thread reader([&] {
    std::mt19937 random(3);
    for (std::uint32_t i = 0; i < 400'000; ++i) {
      const std::uint32_t id = random() % (kEach * 4);
      const std::optional<Launch> found = map.get(id);
      if (found && (found->context != id * 1000ull + 1 || found->start_ns != id)) ++wrong;
    }
  });
  for (std::thread& thread : threads) thread.join();
  reader.join();
  CHECK(wrong == 0);
}

TEST_CASE("a gap is split at what the thread did, nowhere goes to what follows") {
  ThreadMarks marks;
  marks.add(100, 1);
  marks.add(150, 0);
  marks.add(170, 2);
  marks.add(300, 3);
  std::vector<std::pair<leadline_context, std::int64_t>> parts;
  marks.split(120, 250, 9, [&](leadline_context context, std::int64_t ns) { parts.emplace_back(context, ns); });
  CHECK(parts == std::vector<std::pair<leadline_context, std::int64_t>>{{1, 30}, {2, 100}});
  parts.clear();
  marks.split(150, 160, 9, [&](leadline_context context, std::int64_t ns) { parts.emplace_back(context, ns); });
  CHECK(parts == std::vector<std::pair<leadline_context, std::int64_t>>{{9, 10}});
}

TEST_CASE("queue depth counts earlier work of the stream that had not ended at the call") {
  StreamQueues queues;
  CHECK(queues.add(1, 0, 100) == 0);
  CHECK(queues.add(1, 10, 200) == 1);
  CHECK(queues.add(1, 20, 300) == 2);
  CHECK(queues.add(1, 150, 400) == 2);
  CHECK(queues.add(1, 1000, 1100) == 0);
  CHECK(queues.add(2, 0, 100) == 0);
  CHECK(queues.add(2, 20, 300) == 1);
  CHECK(queues.add(2, 10, 200) == 1);  // told late: only what ended before it was ahead of it
  CHECK(queues.add(2, 30, 400) == 3);
  std::int64_t deepest = 0;
  for (std::int64_t i = 0; i < 5000; ++i) deepest = queues.add(3, i, 1'000'000 + i);
  CHECK(deepest == static_cast<std::int64_t>(StreamQueues::kMost) - 1);
}

TEST_CASE("nodes of a graph in a graph are further ones of the whole, where the numbers add up") {
  constexpr auto id = [](std::uint64_t graph, std::uint64_t node) { return graph << 32 | node; };
  const auto make = [&](GraphMap& graphs, std::uint64_t first_own) {
    graphs.created(id(1, 0), 1, 10);  // a kernel, and the graph that is a node
    graphs.created(id(1, 1), 1, 11);
    graphs.created(id(2, 0), 2, 20);  // what that graph holds
    graphs.created(id(2, 1), 2, 21);
    const GraphMaking making{99, 7};
    graphs.cloned(id(3, 0), id(1, 0), 3, making);
    graphs.cloned(id(4, 0), id(2, 0), 4, making);
    graphs.cloned(id(4, 1), id(2, 1), 4, making);
    graphs.cloned(id(3, 1), id(1, 1), 3, making, true);
    graphs.created(id(3, first_own), 3, 99, making);  // the driver's own
    std::vector<std::uint64_t> told;
    graphs.instantiated(7, [&](std::uint64_t node, std::uint64_t clone) {
      told.push_back(node);
      told.push_back(clone);
    });
    graphs.instantiated(7, [&](std::uint64_t, std::uint64_t) { told.push_back(0); });  // once
    return told;
  };
  GraphMap graphs;
  CHECK(make(graphs, 4) == std::vector<std::uint64_t>{id(3, 2), id(4, 0), id(3, 3), id(4, 1)});
  CHECK(graphs.find(id(3, 0)).place == 10);
  CHECK(graphs.find(id(3, 2)).place == 20);
  CHECK(graphs.find(id(3, 3)).place == 21);
  CHECK(graphs.find(id(3, 3)).origin == GraphMap::Origin::kCaptured);
  CHECK(graphs.find(id(3, 9)).origin == GraphMap::Origin::kWithin);
  CHECK(graphs.find(id(3, 9)).place == 99);
  CHECK(graphs.find(id(5, 0)).origin == GraphMap::Origin::kBefore);
  GraphMap unequal;
  CHECK(make(unequal, 3).empty());
  CHECK(unequal.find(id(3, 2)).origin == GraphMap::Origin::kWithin);
}

TEST_CASE("a buffer comes back to the pool, a stranger's does not") {
  BufferPool pool;
  std::vector<std::uint8_t*> taken;
  for (std::uint8_t* buffer = pool.take(); buffer; buffer = pool.take()) taken.push_back(buffer);
  CHECK(taken.size() == BufferPool::kMost);
  std::uint8_t other[8];
  CHECK_FALSE(pool.submit({other, 8, nullptr, 0}));
  CHECK(pool.submit({taken[5], 1, nullptr, 0}));
  CHECK(pool.submit({taken[2], 2, nullptr, 0}));
  std::vector<std::size_t> order;
  CHECK(pool.drain([&](const FullBuffer& full) { order.push_back(full.valid_bytes); }) == 2);
  CHECK(order == std::vector<std::size_t>{1, 2});
  CHECK(pool.take() != nullptr);
}

TEST_CASE("locked memory of the host is told by any address in it, until it is given back") {
  const auto memory = std::make_unique<HostMemory>();
  for (const std::uint64_t begin : {0x5000u, 0x1000u, 0x3000u}) memory->take(begin, 0x1000);
  for (const std::uint64_t address : {0x1000u, 0x1fffu, 0x3abcu, 0x5fffu})
    CHECK(memory->of(address) == Memory::kPinned);
  for (const std::uint64_t address : {0xfffu, 0x2000u, 0x4fffu, 0x6000u})
    CHECK(memory->of(address) == Memory::kPageable);
  CHECK(memory->of(0) == Memory::kHost);
  memory->give_back(0x3000);
  memory->give_back(0x9000);  // nobody's
  CHECK(memory->of(0x3abc) == Memory::kPageable);
  CHECK(memory->of(0x5000) == Memory::kPinned);
  for (std::uint64_t at = 0; at < HostMemory::kMost; ++at) memory->take((at + 16) << 16, 1);
  CHECK(memory->of(16 << 16) == Memory::kPinned);
  CHECK(memory->of(0x3abc) == Memory::kHost);  // there was no room for all
}

TEST_CASE("locked memory is looked up while other threads lock and give back") {
  const auto memory = std::make_unique<HostMemory>();
  memory->take(1 << 20, 4096);
  std::atomic<bool> done{false};
  std::thread writer([&] {
    for (std::uint64_t round = 0; round < 2000; ++round) {
      memory->take(4096, 4096);
      memory->give_back(4096);
    }
    done = true;
  });
  bool never_pageable = true;
  while (!done) never_pageable = never_pageable && memory->of((1 << 20) + 5) != Memory::kPageable;
  writer.join();
  CHECK(never_pageable);
  CHECK(memory->of((1 << 20) + 5) == Memory::kPinned);
}

}  // namespace leadline::gpu
