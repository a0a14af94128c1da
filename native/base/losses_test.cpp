#include "base/losses.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace leadline;

namespace {

using Rows = std::vector<std::pair<std::string, std::uint64_t>>;

Rows told(const LossCounters& counters, LossKind kind) {
  Rows rows;
  for (const LossCounters::Told& one : counters.told(kind)) rows.emplace_back(one.sentence, one.count);
  return rows;
}

}  // namespace

TEST_CASE("Losses add up over threads, by sentence") {
  LossCounters counters;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&counters, t] {
      const std::string own(100, static_cast<char>('a' + t));
      for (int i = 0; i < 1000; ++i) {
        counters.count(LossKind::kFreeUnknown, 2, own);
        counters.count(LossKind::kFreeUnknown, 1, "of all");
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(counters.total(LossKind::kFreeUnknown) == 12000);
  Rows rows = told(counters, LossKind::kFreeUnknown);
  std::ranges::sort(rows);
  CHECK(rows == Rows{{std::string(100, 'a'), 2000},
                     {std::string(100, 'b'), 2000},
                     {std::string(100, 'c'), 2000},
                     {std::string(100, 'd'), 2000},
                     {"of all", 4000}});
  CHECK(counters.total(LossKind::kNodesDropped) == 0);
  CHECK(counters.detail(LossKind::kNodesDropped).empty());
  CHECK(counters.told(LossKind::kNodesDropped).empty());
}

TEST_CASE("Several sentences of a kind are kept in their order; more than that are counted together") {
  LossCounters counters;
  Rows expected;
  for (std::size_t i = 0; i < LossCounters::kMostSentences; ++i) {
    const std::string sentence = "cause " + std::to_string(i);
    counters.count(LossKind::kProviderUnavailable, i + 1, sentence);
    expected.emplace_back(sentence, i + 1);
  }
  counters.count(LossKind::kProviderUnavailable, 5, "one too many");
  counters.count(LossKind::kProviderUnavailable, 6, "and another");
  counters.count(LossKind::kProviderUnavailable, 7);
  counters.count(LossKind::kProviderUnavailable, 1, "cause 3");
  counters.count(LossKind::kProviderUnavailable, 0, "never happened");
  expected[3].second += 1;
  expected.emplace_back("", 7);
  expected.emplace_back(LossCounters::kOthers, 11);
  CHECK(told(counters, LossKind::kProviderUnavailable) == expected);
  CHECK(counters.total(LossKind::kProviderUnavailable) == 36 + 11 + 7 + 1);
  CHECK(counters.detail(LossKind::kProviderUnavailable) == "cause 0");
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
  CHECK(told(counters, LossKind::kWriteFailed) == Rows{{"third", 1}});
}
