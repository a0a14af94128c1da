#include "offline/groups.h"

#include <doctest/doctest.h>

#include <map>
#include <random>
#include <utility>

using namespace leadline::offline;

TEST_CASE("rows that are equal in all columns are one group, in the order of their first rows") {
  const std::vector<int64_t> a{7, 7, -1, 7, INT64_MIN};
  const std::vector<int64_t> b{1, 2, 1, 1, 2};
  const Groups found = distinct({a, b});
  CHECK(found.first == std::vector<int64_t>{0, 1, 2, 4});
  CHECK(found.place == std::vector<int32_t>{0, 1, 2, 0, 3});
  CHECK(distinct({}).place.empty());
}

TEST_CASE("groups of many rows are those of a map") {
  std::mt19937_64 random(1);
  std::vector<int64_t> a(20'000);
  std::vector<int64_t> b(20'000);
  for (auto& value : a) value = static_cast<int64_t>(random() % 97) << 40;
  for (auto& value : b) value = static_cast<int64_t>(random() % 89);
  const Groups found = distinct({a, b});
  std::map<std::pair<int64_t, int64_t>, int32_t> known;
  for (size_t row = 0; row < a.size(); ++row) {
    const auto [place, is_new] = known.try_emplace({a[row], b[row]}, static_cast<int32_t>(known.size()));
    REQUIRE(found.place[row] == place->second);
  }
  CHECK(found.first.size() == known.size());
}

TEST_CASE("groups are added up") {
  const std::vector<int32_t> group{2, 0, 2};
  const std::vector<int64_t> values{5, 7, -1};
  const GroupSums found = sums(group, values, 3);
  CHECK(found.count == std::vector<int64_t>{1, 0, 2});
  CHECK(found.total == std::vector<int64_t>{7, 0, 4});
  CHECK(found.smallest[2] == -1);
  CHECK(found.largest[2] == 5);
  CHECK(found.squares == std::vector<double>{49, 0, 26});
}

TEST_CASE("levels count the rows above, and circles are cut once") {
  const std::vector<int64_t> above{-1, 0, 1, 4, 5, 3, 4, 99};
  const Levels found = levels(above, 100);
  CHECK(found.level[2] == 2);
  CHECK(found.level[7] == 0);
  REQUIRE(found.cut.size() == 1);
  auto mended = above;
  mended[static_cast<size_t>(found.cut[0])] = -1;
  const Levels again = levels(mended, 100);
  CHECK(again.cut.empty());
  CHECK(again.level == found.level);
}

TEST_CASE("what lies too deep begins anew") {
  std::vector<int64_t> above(10);
  for (size_t row = 0; row < above.size(); ++row) above[row] = static_cast<int64_t>(row) - 1;
  const Levels found = levels(above, 3);
  CHECK(found.level == std::vector<int32_t>{0, 1, 2, 3, 0, 1, 2, 3, 0, 1});
  CHECK(found.cut == std::vector<int64_t>{4, 8});
}

TEST_CASE("the nearest wanted row above, children first and circles too") {
  const std::vector<int64_t> above{2, 0, 3, -1, 5, 4};
  const std::vector<uint8_t> wanted{0, 1, 1, 0, 0, 0};
  CHECK(nearest(above, wanted) == std::vector<int64_t>{2, 1, 2, -1, -1, -1});
}
