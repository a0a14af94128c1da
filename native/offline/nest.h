// Spans of threads by nesting: what is open around each, and what of its time is its own.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace leadline::offline {

struct Nested {
  std::vector<int32_t> above;   // row of the innermost span that is open on its thread, -1 for none
  std::vector<int64_t> end_ns;  // cut to what is around
  std::vector<int64_t> own_ns;  // less what timed spans inside took; of spans that are not timed: 0
  std::vector<int32_t> depth;   // spans around
};

// Spans ordered by start, outer ones first; `thread` counts from 0 to `threads`. The lengths are equal, and no start is
// after its end.
Nested nest(std::span<const int32_t> thread, std::span<const int64_t> start_ns, std::span<const int64_t> end_ns,
            std::span<const uint8_t> timed, size_t threads);

}  // namespace leadline::offline
