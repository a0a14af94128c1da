#include "collector/forward_threads.h"

#include <doctest/doctest.h>

#include <memory>
#include <thread>

using namespace leadline;

namespace {

// A thread of this number that stored one operator and ended.
void short_thread(ForwardThreads& threads, uint64_t number) {
  ForwardThreads::Thread* thread = threads.begin(number, ThreadIndex{static_cast<uint32_t>(number)});
  REQUIRE(thread != nullptr);
  thread->ring.store(0, NodeId{static_cast<uint32_t>(number)});
  threads.end(*thread);
}

}  // namespace

TEST_CASE("Forward operators of threads that have ended are found, however many threads there were before") {
  auto threads = std::make_unique<ForwardThreads>();
  for (uint64_t number = 1; number <= 20'000; ++number) short_thread(*threads, number);
  for (uint64_t number = 20'000; number > 20'000 - ForwardThreads::kEnded; --number) {
    const ForwardThreads::Forward found = threads->find(number, 0);
    REQUIRE(raw(found.node) == number);
    CHECK(raw(found.tree) == number);
    CHECK(raw(threads->tree_of(number)) == number);
  }
  CHECK(threads->find(1, 0).node == kNoNode);
  CHECK(threads->find(0, 0).node == kNoNode);
  CHECK(threads->held_bytes() < 10'000'000);
}

TEST_CASE("Threads that live are never forgotten") {
  auto threads = std::make_unique<ForwardThreads>();
  for (uint64_t number = 1; number <= 6'000; ++number) {
    ForwardThreads::Thread* thread = threads->begin(number, ThreadIndex{1});
    REQUIRE(thread != nullptr);
    thread->ring.store(0, NodeId{static_cast<uint32_t>(number)});
  }
  for (uint64_t number = 10'000; number < 20'000; ++number) short_thread(*threads, number);
  for (uint64_t number = 1; number <= 6'000; ++number) CHECK(raw(threads->find(number, 0).node) == number);
}

TEST_CASE("A number whose place is given to another thread is found with its own node or not at all") {
  auto threads = std::make_unique<ForwardThreads>();
  std::atomic<uint64_t> latest{0};
  std::thread reader([&] {
    for (uint64_t seen = 0; seen < 30'000;) {
      seen = latest.load(std::memory_order_acquire);
      for (uint64_t back = 0; back < 2 * ForwardThreads::kEnded && back < seen; back += 97) {
        const ForwardThreads::Forward found = threads->find(seen - back, 0);
        CHECK((found.node == kNoNode || (raw(found.node) == seen - back && raw(found.tree) == seen - back)));
      }
    }
  });
  for (uint64_t number = 1; number <= 30'000; ++number) {
    short_thread(*threads, number);
    latest.store(number, std::memory_order_release);
  }
  reader.join();
}
