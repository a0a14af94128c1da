#include "offline/nest.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

using leadline::offline::nest;

namespace {
using Rows = std::vector<int32_t>;
using Times = std::vector<int64_t>;
}  // namespace

TEST_CASE("a span stands below the innermost one that is open on its thread") {
  const auto found = nest(Rows{0, 0, 1, 0, 0}, Times{0, 10, 10, 20, 60}, Times{50, 40, 90, 30, 70},
                          std::vector<uint8_t>{1, 1, 1, 1, 1}, 2);
  CHECK(found.above == Rows{-1, 0, -1, 1, -1});
  CHECK(found.depth == Rows{0, 1, 0, 2, 0});
  CHECK(found.own_ns == Times{20, 20, 80, 10, 10});
}

TEST_CASE("what sticks out of the span around is cut off, so no nanosecond counts twice") {
  const auto found = nest(Rows{0, 0, 0}, Times{0, 10, 30}, Times{20, 40, 35}, std::vector<uint8_t>{1, 1, 1}, 1);
  CHECK(found.end_ns == Times{20, 20, 35});
  CHECK(found.own_ns == Times{10, 10, 5});
}

TEST_CASE("a span that is not timed has no time of its own, and takes none from what is around") {
  const auto found = nest(Rows{0, 0, 0}, Times{0, 10, 20}, Times{100, 90, 50}, std::vector<uint8_t>{1, 0, 1}, 1);
  CHECK(found.own_ns == Times{70, 0, 30});
  CHECK(found.above == Rows{-1, 0, 1});
}
