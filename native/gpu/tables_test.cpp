// What callbacks write and the fold reads: graphs, queue depth, buffers, locked memory.
#include <doctest/doctest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "gpu/buffer_pool.h"
#include "gpu/event_map.h"
#include "gpu/graph_map.h"
#include "gpu/host_memory.h"
#include "gpu/stream_queue.h"

namespace leadline::gpu {

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
  for (auto buffer = pool.take(); buffer.data; buffer = pool.take()) taken.push_back(buffer.data);
  CHECK(taken.size() == BufferPool::kMost);
  std::uint8_t other[8];
  CHECK_FALSE(pool.submit({other, 8, nullptr, 0}));
  CHECK(pool.submit({taken[5], 1, nullptr, 0}));
  CHECK(pool.submit({taken[2], 2, nullptr, 0}));
  std::vector<std::size_t> order;
  CHECK(pool.drain([&](const FullBuffer& full) { order.push_back(full.valid_bytes); }) == 2);
  CHECK(order == std::vector<std::size_t>{1, 2});
  CHECK(pool.take().data != nullptr);
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

TEST_CASE("events of two threads in one place of the map are never mixed") {
  const auto map = std::make_unique<EventMap>();
  const auto handle = [](std::uint64_t number) { return reinterpret_cast<const void*>(number); };
  const void* const one = handle(64);
  map->record(one, 1, 1);
  std::uint64_t other = 128;  // until one takes the place of the first
  for (; map->find(one).correlation != 0; other += 64) map->record(handle(other), 2, 2);
  const void* const two = handle(other - 64);
  std::atomic<bool> done{false};
  std::thread writer([&] {
    for (int round = 0; round < 400'000; ++round) map->record(one, 1, 1);
    done = true;
  });
  std::thread rival([&] {
    while (!done) map->record(two, 2, 2);
  });
  bool mixed = false;
  while (!done) {
    const EventMap::Recorded first = map->find(one), second = map->find(two);
    mixed = mixed || first.correlation == 2 || first.stream == 2 || second.correlation == 1 || second.stream == 1;
  }
  writer.join();
  rival.join();
  CHECK_FALSE(mixed);
  map->record(two, 7, 9);
  CHECK(map->find(two).correlation == 7);
  CHECK(map->find(two).stream == 9);
}

}  // namespace leadline::gpu
