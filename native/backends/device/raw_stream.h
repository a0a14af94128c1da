// The same sums from a stream of accesses, on the host: what other profilers do, for comparing the two (kWantRaw).
#pragma once

#include <cstddef>
#include <vector>

#include "backends/device/tracker.h"

namespace leadline::device {

// What a launch did, as its Rows and page words would say it; without values, which a stream does not carry.
struct Analysed {
  std::vector<Row> rows;  // by range, those that were touched
  std::vector<u32> words;
  u64 outside = 0;
  u64 outside_bytes = 0;
  u64 overrun_bytes = 0;
};

// `ranges` are sorted and disjoint. One thread, one look-up for each access.
Analysed analyse(const RawAccess* accesses, std::size_t count, const Range* ranges, std::size_t range_count,
                 u32 page_shift);

}  // namespace leadline::device
