#include "base/losses.h"

#include <doctest/doctest.h>

#include <thread>
#include <vector>

using namespace leadline;

TEST_CASE("Losses add up over threads and keep one whole first sentence") {
  LossCounters counters;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&counters, t] {
      const std::string sentence(100, static_cast<char>('a' + t));
      for (int i = 0; i < 1000; ++i) counters.count(LossKind::kFreeUnknown, 2, sentence);
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(counters.total(LossKind::kFreeUnknown) == 8000);
  const std::string detail = counters.detail(LossKind::kFreeUnknown);
  REQUIRE(detail.size() == 100);
  CHECK(detail == std::string(100, detail[0]));
  CHECK(counters.total(LossKind::kNodesDropped) == 0);
  CHECK(counters.detail(LossKind::kNodesDropped).empty());
}

TEST_CASE("A detail that is too long is cut between characters") {
  LossCounters counters;
  counters.count(LossKind::kInternalError, 1, std::string(LossCounters::kDetailBytes - 1, 'x') + "\xC3\xA9 and more");
  CHECK(counters.detail(LossKind::kInternalError) == std::string(LossCounters::kDetailBytes - 1, 'x'));
}

TEST_CASE("Cleared counters begin again, with a new sentence") {
  LossCounters counters;
  counters.count(LossKind::kWriteFailed, 3, "first");
  counters.count(LossKind::kWriteFailed, 1, "second");
  CHECK(counters.detail(LossKind::kWriteFailed) == "first");
  counters.clear();
  CHECK(counters.total(LossKind::kWriteFailed) == 0);
  counters.count(LossKind::kWriteFailed, 1, "third");
  CHECK(counters.detail(LossKind::kWriteFailed) == "third");
}
