// Sums of numbers that a file of strangers may hold: what does not fit is the largest or smallest that does.
#pragma once

#include <cstdint>

namespace leadline::xla {

inline int64_t plus(int64_t a, int64_t b) noexcept {
  int64_t sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return b < 0 ? INT64_MIN : INT64_MAX;
}

inline int64_t minus(int64_t a, int64_t b) noexcept {
  int64_t rest = 0;
  if (!__builtin_sub_overflow(a, b, &rest)) return rest;
  return b > 0 ? INT64_MIN : INT64_MAX;
}

}  // namespace leadline::xla
