#include "providers/torch/zeros.h"

#include <doctest/doctest.h>

#include <vector>

using leadline::torch::Elements;
using leadline::torch::mostly_zero;

namespace {

// `rows` of eight weights, of which the first `used` are not zero.
std::vector<float> weights(size_t rows, size_t used) {
  std::vector<float> made(rows * 8, 0.0F);
  for (size_t i = 0; i < made.size(); ++i)
    if (i % 8 < used) made[i] = 0.5F;
  return made;
}

Elements of(const std::vector<float>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), sizeof(float), 2, {numbers.size() / 8, 8}, {8, 1}};
}

}  // namespace

TEST_CASE("two weights of eight are mostly zeros, and five of eight are not") {
  CHECK(mostly_zero(of(weights(512, 2))));
  CHECK(mostly_zero(of(weights(512, 0))));
  CHECK(!mostly_zero(of(weights(512, 5))));
  CHECK(!mostly_zero(of(weights(512, 8))));
}

TEST_CASE("a column is read by its stride, and what is broadcast by a stride of none") {
  const std::vector<float> numbers = weights(512, 2);
  const auto* const data = reinterpret_cast<const char*>(numbers.data());
  CHECK(!mostly_zero({data, sizeof(float), 1, {512}, {8}}));
  CHECK(mostly_zero({data + 3 * sizeof(float), sizeof(float), 1, {512}, {8}}));
  CHECK(!mostly_zero({data, sizeof(float), 2, {512, 64}, {8, 0}}));
}

TEST_CASE("truth of one byte is read as well, and nothing is not zeros") {
  const std::vector<char> mask{0, 0, 0, 1, 0, 0, 0, 0};
  CHECK(mostly_zero({mask.data(), 1, 1, {8}, {1}}));
  CHECK(!mostly_zero({mask.data(), 1, 1, {0}, {1}}));
}
