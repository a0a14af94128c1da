// What callbacks keep for a scope or for a thread: 64 bits of its own for each subscriber, zero when it first looks.
//
// Rows are made when a callback is called for a scope and serve again when it has ended; a thread that nobody calls
// back for has none.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "stack/call_path.h"

namespace leadline {

class ScopeData {
 public:
  static constexpr uint32_t kSubscribers = 8;

  // `subscription`: the number that no other subscriber of this place has had.
  uint64_t* of_thread(uint32_t index, uint32_t subscription) noexcept { return look(thread_, index, subscription); }

  // nullptr for want of memory. Valid until the next call.
  uint64_t* of_scope(CallPath& path, Scope& scope, uint32_t index, uint32_t subscription) noexcept {
    if (scope.data_row == 0) scope.data_row = take_row(path);
    return scope.data_row == 0 ? nullptr : look(rows_[scope.data_row - 1], index, subscription);
  }

  // The scope ends.
  void give_back(const Scope& scope) noexcept {
    if (scope.data_row == 0) return;
    rows_[scope.data_row - 1] = {};
    free_.push_back(scope.data_row);  // within its capacity, see take_row
  }

  // No scope is open.
  void clear() noexcept {
    rows_.clear();
    free_.clear();
  }
  // The state serves another thread.
  void begin_thread() noexcept {
    thread_ = {};
    clear();
  }

 private:
  struct Cell {
    uint64_t data = 0;
    uint32_t subscription = 0;
  };
  using Row = std::array<Cell, kSubscribers>;

  static uint64_t* look(Row& row, uint32_t index, uint32_t subscription) noexcept {
    Cell& cell = row[index];
    if (cell.subscription != subscription) cell = {0, subscription};
    return &cell.data;
  }

  uint32_t take_row(CallPath& path) noexcept try {
    if (free_.empty() && rows_.size() >= kCollectFrom) collect(path);
    if (!free_.empty()) {
      const uint32_t row = free_.back();
      free_.pop_back();
      return row;
    }
    free_.reserve(rows_.size() + 1);
    rows_.emplace_back();
    return static_cast<uint32_t>(rows_.size());
  } catch (...) {
    return 0;
  }

  // Rows of scopes that were dropped without an end.
  void collect(CallPath& path) {
    std::vector<bool> used(rows_.size() + 1);
    path.for_each_scope([&](const Scope& scope) { used[scope.data_row] = true; });
    free_.reserve(rows_.size());
    for (uint32_t row = 1; row <= rows_.size(); ++row) {
      if (used[row]) continue;
      rows_[row - 1] = {};
      free_.push_back(row);
    }
  }

  static constexpr size_t kCollectFrom = 256;
  Row thread_{};
  std::vector<Row> rows_;
  std::vector<uint32_t> free_;
};

}  // namespace leadline
