#include "offline/groups.h"

#include <algorithm>
#include <limits>

namespace leadline::offline {
namespace {

constexpr int32_t kUnknown = -1;
constexpr int32_t kUnderWay = -2;

uint64_t mixed(uint64_t hash, int64_t value) noexcept {
  hash = (hash ^ static_cast<uint64_t>(value)) * 0x9E3779B97F4A7C15;
  return hash ^ (hash >> 32);
}

bool is_row(int64_t row, size_t rows) noexcept { return row >= 0 && static_cast<uint64_t>(row) < rows; }

}  // namespace

Groups distinct(const std::vector<std::span<const int64_t>>& columns) {
  const size_t rows = columns.empty() ? 0 : columns.front().size();
  Groups found;
  found.place.resize(rows);
  std::vector<int32_t> slots(1024, kUnknown);
  std::vector<uint64_t> hashes;
  const auto slot_of = [&](uint64_t hash) { return hash & (slots.size() - 1); };
  const auto same = [&](size_t a, size_t b) {
    return std::ranges::all_of(columns, [&](const auto& column) { return column[a] == column[b]; });
  };
  for (size_t row = 0; row < rows; ++row) {
    uint64_t hash = 0;
    for (const auto& column : columns) hash = mixed(hash, column[row]);
    size_t slot = slot_of(hash);
    for (; slots[slot] != kUnknown; slot = (slot + 1) & (slots.size() - 1)) {
      const auto group = static_cast<size_t>(slots[slot]);
      if (hashes[group] == hash && same(static_cast<size_t>(found.first[group]), row)) break;
    }
    if (slots[slot] == kUnknown) {
      slots[slot] = static_cast<int32_t>(found.first.size());
      found.first.push_back(static_cast<int64_t>(row));
      hashes.push_back(hash);
    }
    found.place[row] = slots[slot];
    if (found.first.size() * 2 <= slots.size()) continue;
    slots.assign(slots.size() * 2, kUnknown);
    for (size_t group = 0; group < hashes.size(); ++group) {
      size_t free = slot_of(hashes[group]);
      while (slots[free] != kUnknown) free = (free + 1) & (slots.size() - 1);
      slots[free] = static_cast<int32_t>(group);
    }
  }
  return found;
}

GroupSums sums(std::span<const int32_t> group, std::span<const int64_t> values, size_t groups) {
  GroupSums found;
  found.count.assign(groups, 0);
  found.total.assign(groups, 0);
  found.smallest.assign(groups, std::numeric_limits<int64_t>::max());
  found.largest.assign(groups, std::numeric_limits<int64_t>::min());
  found.squares.assign(groups, 0);
  for (size_t row = 0; row < group.size(); ++row) {
    const auto place = static_cast<size_t>(group[row]);
    const int64_t value = values[row];
    ++found.count[place];
    found.total[place] = static_cast<int64_t>(static_cast<uint64_t>(found.total[place]) + static_cast<uint64_t>(value));
    found.smallest[place] = std::min(found.smallest[place], value);
    found.largest[place] = std::max(found.largest[place], value);
    found.squares[place] += static_cast<double>(value) * static_cast<double>(value);
  }
  return found;
}

Levels levels(std::span<const int64_t> above, int32_t deepest) {
  Levels found;
  found.level.assign(above.size(), kUnknown);
  auto& level = found.level;
  std::vector<size_t> path;
  for (size_t from = 0; from < above.size(); ++from) {
    for (size_t row = from; level[row] == kUnknown; row = static_cast<size_t>(above[row])) {
      level[row] = kUnderWay;
      path.push_back(row);
      if (!is_row(above[row], above.size())) break;
    }
    for (; !path.empty(); path.pop_back()) {
      const size_t row = path.back();
      const int32_t around = is_row(above[row], above.size()) ? level[static_cast<size_t>(above[row])] : kUnknown;
      level[row] = around >= 0 ? around + 1 : 0;
      if (around == kUnderWay || level[row] > deepest) {
        level[row] = 0;
        found.cut.push_back(static_cast<int64_t>(row));
      }
    }
  }
  return found;
}

std::vector<int64_t> nearest(std::span<const int64_t> above, std::span<const uint8_t> wanted) {
  constexpr int64_t kOpen = -2;
  constexpr int64_t kOnPath = -3;
  std::vector<int64_t> found(above.size(), kOpen);
  std::vector<size_t> path;
  for (size_t from = 0; from < above.size(); ++from) {
    int64_t answer = -1;
    for (size_t row = from;; row = static_cast<size_t>(above[row])) {
      if (found[row] != kOpen) {
        answer = std::max<int64_t>(found[row], -1);
        break;
      }
      found[row] = kOnPath;
      path.push_back(row);
      if (wanted[row] != 0) {
        answer = static_cast<int64_t>(row);
        break;
      }
      if (!is_row(above[row], above.size())) break;
    }
    for (; !path.empty(); path.pop_back()) found[path.back()] = answer;
  }
  return found;
}

}  // namespace leadline::offline
