// Programs drawn at random for the text of backends/device, run on the stand-in, and a slow reference that knows
// nothing of how the text works. Included behind simt.h and patches.cu, whose functions it calls.
#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "backends/device/tracker.h"

namespace leadline::simt {

using device::Row;
using device::u32;
using device::u64;

enum class Does { kRead, kWrite, kAtomic, kReduce, kPrefetch, kMemcpyAsync, kBulkLoad, kBulkStore, kBulkReduce };

// What one thread does at one step.
struct Done {
  bool active = false;
  Does does = Does::kRead;
  u32 bytes = 0;  // of the instruction
  u32 zeros = 0;  // of memcpy_async
  u64 address = 0;
  alignas(16) unsigned char data[16] = {};
};

struct Shape {
  u64 seed = 1;
  unsigned ranges = 20;
  unsigned blocks = 2;
  unsigned threads = 80;  // of a block: its last warp has half of its lanes
  unsigned steps = 60;
  u32 page_shift = 12;
  u32 most_bytes = 200'000;  // of a range
  bool together = true;
};

struct Program {
  Shape shape;
  std::vector<device::Range> ranges;
  u64 words = 0;
  std::vector<std::vector<Done>> threads;  // [thread of the grid][step]; a thread may end early
};

// Ranges of all sizes, some side by side, most with gaps between; accesses at their edges, in gaps, in order,
// scattered.
inline Program draw(const Shape& shape) {
  Program program{shape, {}, 0, {}};
  std::mt19937_64 random(shape.seed);
  u64 at = 0x7f3000000000 + random() % 1000 * 4;
  for (unsigned index = 0; index < shape.ranges; ++index) {
    const u64 bytes = 4 * (1 + random() % (random() % 4 == 0 ? 16 : shape.most_bytes / 4));
    device::Range range{};
    range.begin = at;
    range.end = at + bytes;
    range.object = 1000 + index * 3;
    range.first_word = static_cast<u32>(program.words);
    range.element = static_cast<u32>(random() % 5);
    program.words += device::words_for(bytes, shape.page_shift);
    program.ranges.push_back(range);
    at += bytes + (random() % 3 == 0 ? 0 : random() % 5000 * 4);
  }
  const auto edge = [&] {
    const device::Range& range = program.ranges[random() % program.ranges.size()];
    const u64 places[] = {range.begin,   range.begin - 1, range.begin - 16, range.end,
                          range.end - 1, range.end - 4,   range.end - 8};
    return places[random() % 7];
  };
  const auto inside = [&] {
    const device::Range& range = program.ranges[random() % program.ranges.size()];
    return range.begin + random() % (range.end - range.begin);
  };
  program.threads.resize(size_t{shape.blocks} * shape.threads);
  for (auto& thread : program.threads) thread.resize(shape.steps);
  for (unsigned step = 0; step < shape.steps; ++step) {
    for (size_t first = 0; first < program.threads.size();) {
      const size_t lanes = std::min<size_t>(32, shape.threads - first % shape.threads);
      // A copy in bulk is one for the lanes that come together, so it is drawn only where it is known which those are.
      const auto does = static_cast<Does>(random() % 3 != 0 ? random() % 3 : random() % (shape.together ? 9 : 6));
      const bool bulk = does >= Does::kBulkLoad;
      const u32 bytes = bulk ? 16 * static_cast<u32>(1 + random() % (random() % 2 == 0 ? 8 : 4096))
                             : 1u << (does == Does::kMemcpyAsync ? 2 + random() % 3 : random() % 5);
      const u64 pattern = random() % 6;
      const u64 base = pattern < 2 ? edge() : inside();
      const u64 mask = random() % 3 == 0 ? random() : ~u64{0};
      for (size_t lane = 0; lane < lanes; ++lane) {
        Done& one = program.threads[first + lane][step];
        one.active = (mask >> lane & 1) != 0 && random() % 20 != 0;
        one.does = does;
        one.bytes = bytes;
        switch (bulk ? 0 : pattern) {
          case 0:
            one.address = base;
            break;
          case 1:
          case 2:
            one.address = base + lane * bytes;
            break;
          case 3:
            one.address = base - lane * bytes * 7;
            break;
          case 4:
            one.address = inside();
            break;
          default:
            one.address = edge();
        }
        if (!bulk) one.address -= one.address % bytes;
        if (does == Does::kMemcpyAsync) {
          if (random() % 3 == 0) one.zeros = static_cast<u32>(random() % (bytes + 1));
          if (one.zeros == bytes) one.address = 0;
        }
        for (unsigned char& byte : one.data) byte = static_cast<unsigned char>(random() % 3 == 0 ? 0x7f : random());
        if (random() % 4 == 0) std::memset(one.data, random() % 2 == 0 ? 0xff : 0, sizeof(one.data));
        const u32 infinity = 0x7f800000u;
        if (random() % 8 == 0) std::memcpy(one.data, &infinity, 4);
      }
      first += lanes;
    }
  }
  for (auto& thread : program.threads) {
    if (random() % 5 == 0) thread.resize(random() % (thread.size() + 1));
  }
  return program;
}

// The sums of a launch as anybody would count them.
struct Expected {
  std::map<u32, Row> rows;  // by range
  std::map<u32, std::set<u64>> pages;
  device::Totals totals{};
  u64 accesses = 0;
};

inline u64 count_not_finite(const Done& done, u32 element, u64 bytes, bool want_nan) {
  u64 count = 0;
  const u64 each = element == device::kFloat32 ? 4 : element == device::kFloat64 ? 8 : 2;
  for (u64 at = 0; at + each <= bytes; at += each) {
    double value = 0;
    if (element == device::kFloat64) {
      std::memcpy(&value, done.data + at, 8);
    } else {
      u32 bits = 0;
      std::memcpy(&bits, done.data + at, each);
      if (element == device::kBfloat16) bits <<= 16;
      if (element == device::kFloat16) {  // only whether it is finite matters
        bits = (bits >> 10 & 31) == 31 ? ((bits & 1023) != 0 ? 0x7fc00000u : 0x7f800000u) : 0;
      }
      float narrow = 0;
      std::memcpy(&narrow, &bits, 4);
      value = narrow;
    }
    count += want_nan ? value != value : value == value && value - value != 0;
  }
  return count;
}

inline void expect_access(Expected& expected, const Program& program, const std::map<u64, u32>& begins,
                          const Done& done) {
  const bool bulk = done.does >= Does::kBulkLoad;
  const u64 bytes = done.does == Does::kMemcpyAsync ? done.bytes - done.zeros : done.bytes;
  if (done.does == Does::kPrefetch) {
    ++expected.totals.prefetches;
    return;
  }
  if (bytes == 0) return;
  ++expected.accesses;
  auto found = begins.upper_bound(done.address);
  if (found == begins.begin() || program.ranges[std::prev(found)->second].end <= done.address) {
    ++expected.totals.outside;
    expected.totals.outside_bytes += bytes;
    return;
  }
  const u32 index = std::prev(found)->second;
  const device::Range& range = program.ranges[index];
  const auto [place, fresh] = expected.rows.try_emplace(index);
  Row& row = place->second;
  const u64 offset = done.address - range.begin;
  const u64 within = std::min<u64>(bytes, range.end - done.address);
  expected.totals.overrun_bytes += bytes - within;
  row.object = range.object;
  row.least = fresh ? offset : std::min<u64>(row.least, offset);
  row.most = std::max<u64>(row.most, offset + within);
  switch (done.does) {
    case Does::kRead:
    case Does::kMemcpyAsync:
    case Does::kBulkLoad:
      ++row.reads;
      row.read_bytes += within;
      break;
    case Does::kWrite:
    case Does::kBulkStore:
      ++row.writes;
      row.written_bytes += within;
      if (!bulk && range.element != device::kOther) {
        row.nan += count_not_finite(done, range.element, within, true);
        row.inf += count_not_finite(done, range.element, within, false);
      }
      break;
    default:
      ++row.atomics;
      row.atomic_bytes += within;
  }
  for (u64 byte = offset; byte < offset + within; ++byte) {
    if (byte == offset || byte % 64 == 0) expected.pages[index].insert(byte >> program.shape.page_shift);
  }
  expected.pages[index].insert((offset + within - 1) >> program.shape.page_shift);
}

inline Expected expect(const Program& program) {
  Expected expected;
  std::map<u64, u32> begins;
  for (u32 index = 0; index < program.ranges.size(); ++index) begins[program.ranges[index].begin] = index;
  const Shape& shape = program.shape;
  for (size_t first = 0; first < program.threads.size();) {
    const size_t lanes = std::min<size_t>(32, shape.threads - first % shape.threads);
    for (unsigned step = 0; step < shape.steps; ++step) {
      bool bulk_done = false;
      for (size_t lane = 0; lane < lanes; ++lane) {
        const auto& thread = program.threads[first + lane];
        if (step >= thread.size() || !thread[step].active) continue;
        const Done& done = thread[step];
        const u32 point = done.does >= Does::kBulkLoad      ? device::kBulk
                          : done.does == Does::kMemcpyAsync ? device::kMemcpyAsync
                                                            : device::kGlobal;
        ++expected.totals.points[point].threads;
        if (done.does >= Does::kBulkLoad) {
          if (bulk_done) continue;  // one for the warp
          bulk_done = true;
        }
        expect_access(expected, program, begins, done);
      }
    }
    first += lanes;
  }
  expected.totals.points[device::kExit].threads = program.threads.size();
  for (auto& [index, row] : expected.rows) row.pages = expected.pages[index].size();
  return expected;
}

}  // namespace leadline::simt
