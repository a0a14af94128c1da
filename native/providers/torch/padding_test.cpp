#include "providers/torch/padding.h"

#include <doctest/doctest.h>

#include <vector>

using leadline::torch::Padding;
using leadline::torch::TokenNumbers;

namespace {

TokenNumbers batch(const std::vector<int64_t>& numbers, int64_t columns) {
  const auto rows = static_cast<int64_t>(numbers.size()) / columns;
  return {reinterpret_cast<const char*>(numbers.data()), sizeof(int64_t), rows, columns, columns, 1};
}

}  // namespace

TEST_CASE("rows that end with one number are padded, and what all of them end with is common") {
  const std::vector<int64_t> numbers{5, 6, 7, 8, 0, 0, 0, 0, 9, 8, 0, 0, 0, 0, 0, 0};
  const Padding found = Padding::of(batch(numbers, 8)).value();
  CHECK(found.all == 625'000);
  CHECK(found.common == 500'000);
}

TEST_CASE("padding may stand at the beginning, and a row without it leaves nothing common") {
  const std::vector<int64_t> numbers{3, 3, 3, 3, 3, 3, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8};
  const Padding found = Padding::of(batch(numbers, 8)).value();
  CHECK(found.all == 375'000);
  CHECK(found.common == 0);
}

TEST_CASE("numbers that do not repeat are no padding") {
  CHECK(Padding::of(batch({1, 3, 2, 4, 5, 7, 6, 8}, 4)).value().all == 0);
}

TEST_CASE("positions, types of tokens and rows without columns are no text") {
  CHECK_FALSE(Padding::of(batch({3, 4, 5, 6, 3, 4, 5, 6}, 4)));
  CHECK_FALSE(Padding::of(batch({0, 0, 0, 0, 1, 1, 1, 1}, 4)));
  CHECK_FALSE(Padding::of({}));
}

TEST_CASE("numbers of four bytes and columns that stand apart are read by their strides") {
  const std::vector<int32_t> numbers{4, 9, 5, 9, 0, 9, 0, 9, 6, 9, 0, 9, 0, 9, 0, 9};
  const TokenNumbers tokens{reinterpret_cast<const char*>(numbers.data()), sizeof(int32_t), 2, 4, 8, 2};
  CHECK(Padding::of(tokens).value().all == 625'000);
  CHECK(Padding::of(tokens).value().common == 500'000);
}
