#include "providers/torch/padding.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace leadline::torch {
namespace {

constexpr int64_t kMostRows = 64;
constexpr int64_t kMostColumns = 16'384;
constexpr int64_t kMillion = 1'000'000;

// Equal numbers that a row ends with.
struct Run {
  int64_t value = 0;
  int64_t length = 0;
};

int64_t at(const TokenNumbers& tokens, int64_t row, int64_t column) noexcept {
  const int64_t element = row * tokens.row_stride + column * tokens.column_stride;
  const char* const from = tokens.data + element * static_cast<int64_t>(tokens.width);
  if (tokens.width == sizeof(int32_t)) {
    int32_t value = 0;
    std::memcpy(&value, from, sizeof value);
    return value;
  }
  int64_t value = 0;
  std::memcpy(&value, from, sizeof value);
  return value;
}

Run run_of(const TokenNumbers& tokens, int64_t row, bool from_end) noexcept {
  const auto column = [&](int64_t i) { return from_end ? tokens.columns - 1 - i : i; };
  Run run{at(tokens, row, column(0)), 1};
  while (run.length < tokens.columns && at(tokens, row, column(run.length)) == run.value) ++run.length;
  return run;
}

// Each number of a row is one more than the last.
bool counts_up(const TokenNumbers& tokens, int64_t row) noexcept {
  for (int64_t column = 1; column < tokens.columns; ++column)
    if (at(tokens, row, column) != at(tokens, row, column - 1) + 1) return false;
  return true;
}

// Rows that hold one number only say nothing of where their text ends.
std::optional<Padding> on_side(const TokenNumbers& tokens, bool from_end) noexcept {
  std::array<Run, kMostRows> runs;
  const int64_t rows = std::min(tokens.rows, kMostRows);
  Run longest;
  int64_t constant = 0;
  for (int64_t i = 0; i < rows; ++i) {
    Run& run = runs[static_cast<size_t>(i)];
    run = run_of(tokens, i * tokens.rows / rows, from_end);
    if (run.length == tokens.columns) {
      ++constant;
    } else if (run.length > longest.length) {
      longest = run;
    }
  }
  if (2 * constant > rows) return std::nullopt;
  if (longest.length < 2) return Padding{};
  int64_t all = 0;
  int64_t common = tokens.columns;
  for (int64_t i = 0; i < rows; ++i) {
    const Run& run = runs[static_cast<size_t>(i)];
    const int64_t length = run.value == longest.value ? run.length : 0;
    all += length;
    common = std::min(common, length);
  }
  return Padding{all * kMillion / (rows * tokens.columns), common * kMillion / tokens.columns};
}

}  // namespace

std::optional<Padding> Padding::of(const TokenNumbers& tokens) noexcept {
  if (tokens.rows < 1 || tokens.columns < 2 || tokens.columns > kMostColumns || counts_up(tokens, 0)) return {};
  const std::optional<Padding> right = on_side(tokens, true);
  const std::optional<Padding> left = on_side(tokens, false);
  if (!right || !left) return {};
  return right->all >= left->all ? right : left;
}

}  // namespace leadline::torch
