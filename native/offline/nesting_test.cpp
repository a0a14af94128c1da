#include "offline/nesting.h"

#include <doctest/doctest.h>

#include <vector>

using leadline::offline::nesting;

TEST_CASE("spans stand in the innermost one that is still open") {
  const std::vector<int64_t> start{0, 1, 2, 6, 20, 20}, end{10, 5, 3, 12, 30, 20};
  const auto found = nesting(start, end);
  CHECK(found.parent == std::vector<int64_t>{-1, 0, 1, 0, -1, 4});
  CHECK(found.root == std::vector<int64_t>{0, 0, 0, 0, 4, 4});
}

TEST_CASE("columns of unequal length and none") {
  const std::vector<int64_t> start{0, 1}, end{2};
  CHECK(nesting(start, end).parent == std::vector<int64_t>{-1});
  CHECK(nesting({}, {}).root.empty());
}
