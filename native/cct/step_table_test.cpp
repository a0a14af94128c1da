#include "cct/step_table.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <random>
#include <thread>
#include <vector>

using namespace leadline;

namespace {

StepTable::Rows rows_of(const StepTable& table) {
  StepTable::Rows rows;
  REQUIRE(table.read(rows));
  return rows;
}

}  // namespace

TEST_CASE("Rows of steps hold every step once, whatever their number, in rows of equal size") {
  for (const int steps : {1, 2, 11, 12, 13, 24, 25, 100, 1000, 4097}) {
    const auto table = std::make_unique<StepTable>();
    std::mt19937 random(static_cast<unsigned>(steps));
    std::vector<int64_t> walls;
    for (int number = 0; number < steps; ++number) {
      walls.push_back(1 + static_cast<int64_t>(random() % 1'000'000));
      StepSums step = StepSums::one(number, walls.back());
      step.operators = number;
      table->add(step);
    }
    const StepTable::Rows rows = rows_of(*table);
    REQUIRE(rows.span_count >= std::min<size_t>(static_cast<size_t>(steps), StepTable::kSpans / 2));
    int64_t at = 0;
    for (size_t i = 0; i < rows.span_count; ++i) {
      const StepSums& span = rows.spans[i];
      CHECK(span.first == at);
      if (i + 1 < rows.span_count) CHECK(span.count == rows.spans[0].count);
      StepSums expected;
      for (int64_t k = at; k < at + span.count; ++k) {
        StepSums step = StepSums::one(k, walls[static_cast<size_t>(k)]);
        step.operators = k;
        expected.add(step);
      }
      CHECK(span.wall_ns == expected.wall_ns);
      CHECK(span.wall_min_ns == expected.wall_min_ns);
      CHECK(span.wall_max_ns == expected.wall_max_ns);
      CHECK(span.operators == expected.operators);
      at += span.count;
    }
    CHECK(at == steps);
    std::vector<int64_t> slowest;
    for (size_t i = 0; i < rows.slowest_count; ++i) {
      slowest.push_back(rows.slowest[i].wall_ns);
      CHECK(walls[static_cast<size_t>(rows.slowest[i].first)] == rows.slowest[i].wall_ns);
    }
    std::sort(slowest.rbegin(), slowest.rend());
    std::sort(walls.rbegin(), walls.rend());
    walls.resize(slowest.size());
    CHECK(slowest.size() == std::min<size_t>(static_cast<size_t>(steps), StepTable::kSlowest));
    CHECK(slowest == walls);
    uint64_t counted = 0;
    for (const uint32_t bin : rows.histogram) counted += bin;
    CHECK(counted == static_cast<uint64_t>(steps));
  }
}

TEST_CASE("A bin of the histogram begins where its formula says") {
  const auto begins = [](size_t bin) { return int64_t{16 + static_cast<int64_t>(bin % 16)} << (bin / 16); };
  CHECK(step_bin(0) == 0);
  CHECK(step_bin(-5) == 0);
  for (size_t bin = 0; bin < kStepBins; ++bin) {
    CHECK(step_bin(begins(bin)) == bin);
    CHECK(step_bin(begins(bin + 1) - 1) == bin);
  }
  CHECK(step_bin(INT64_MAX) == kStepBins - 1);
}

TEST_CASE("What the kernel did not tell of one step is not known of their sum, and of none where none was counted") {
  StepSums sums = StepSums::one(0, 10);
  StepSums known = StepSums::one(1, 20);
  known.counted = 1;
  known.running_ns = 15;
  known.core_wait_ns = -1;
  sums.add(known);
  CHECK(sums.counted == 1);
  CHECK(sums.running_ns == 15);
  CHECK(sums.core_wait_ns == -1);
  known.core_wait_ns = 3;
  sums.add(known);
  CHECK(sums.counted == 2);
  CHECK(sums.running_ns == 30);
  CHECK(sums.core_wait_ns == -1);
}

TEST_CASE("A reader never sees half a step") {
  const auto table = std::make_unique<StepTable>();
  std::atomic<bool> over{false};
  std::thread writer([&] {
    for (int64_t number = 0; number < 20'000; ++number) {
      StepSums step = StepSums::one(number, 100);
      step.operators = 7;
      table->add(step);
    }
    over.store(true);
  });
  while (!over.load()) {
    StepTable::Rows rows;
    if (!table->read(rows)) continue;
    int64_t count = 0, wall_ns = 0, operators = 0;
    for (size_t i = 0; i < rows.span_count; ++i) {
      count += rows.spans[i].count;
      wall_ns += rows.spans[i].wall_ns;
      operators += rows.spans[i].operators;
    }
    CHECK(wall_ns == 100 * count);
    CHECK(operators == 7 * count);
    uint64_t counted = 0;
    for (const uint32_t bin : rows.histogram) counted += bin;
    CHECK(counted == static_cast<uint64_t>(count));
  }
  writer.join();
}
