// How much of a batch of token numbers is padding: equal numbers at the end (or at the beginning) of its rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace leadline::torch {

// Whole numbers of 4 or 8 bytes; strides in elements.
struct TokenNumbers {
  const char* data = nullptr;
  size_t width = 0;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t row_stride = 0;
  int64_t column_stride = 0;
};

// In millionths of the batch. `all`: elements that are padding; `common`: columns that are padding in every row, which
// a batch that ends with its longest row does not have. Of a large batch some rows are looked at. Nothing where the
// numbers are no text: one number in most of the rows (types of tokens), or each one more than the last (positions).
struct Padding {
  int64_t all = 0;
  int64_t common = 0;

  static std::optional<Padding> of(const TokenNumbers& tokens) noexcept;
};

}  // namespace leadline::torch
