#include "offline/nesting.h"

#include <algorithm>

namespace leadline::offline {

Nesting nesting(std::span<const int64_t> start, std::span<const int64_t> end) {
  const auto rows = static_cast<int64_t>(std::min(start.size(), end.size()));
  Nesting found{std::vector<int64_t>(rows), std::vector<int64_t>(rows)};
  std::vector<int64_t> open;
  for (int64_t row = 0; row < rows; ++row) {
    while (!open.empty() && end[open.back()] <= start[row]) open.pop_back();
    found.parent[row] = open.empty() ? -1 : open.back();
    found.root[row] = open.empty() ? row : found.root[open.back()];
    open.push_back(row);
  }
  return found;
}

}  // namespace leadline::offline
