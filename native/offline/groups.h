// Rows of columns that are alike, what each group adds up to, and forests given by the row above each: what reading a
// large trace does most, without sorting. Rows are fewer than 2^31.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace leadline::offline {

// `first`: a row of each group, in the order of the rows; `place`: the group of each row.
struct Groups {
  std::vector<int64_t> first;
  std::vector<int32_t> place;
};

struct GroupSums {
  std::vector<int64_t> count, total, smallest, largest;
  std::vector<double> squares;
};

struct Levels {
  std::vector<int32_t> level;
  std::vector<int64_t> cut;  // rows whose link upwards closes a circle or lies too deep
};

// Rows that are equal in every column are one group. Columns are equally long.
Groups distinct(const std::vector<std::span<const int64_t>>& columns);

// Values by group; groups without any have no count. `group` has numbers below `groups`.
GroupSums sums(std::span<const int32_t> group, std::span<const int64_t> values, size_t groups);

// How many rows stand above each; `above`: a row, or negative for none.
Levels levels(std::span<const int64_t> above, int32_t deepest);

// Of each row the first wanted one on the way up from it, itself included; -1 for none.
std::vector<int64_t> nearest(std::span<const int64_t> above, std::span<const uint8_t> wanted);

}  // namespace leadline::offline
