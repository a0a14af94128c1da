// The analysis on the device: what a launch did with each object, summed where it happens.
//
// Promises: nothing waits for another warp or for the host. Lanes that come together sum together: one atomic per
// range, kind and size of access, not one per thread. Every collective is met by all lanes of the mask that the call
// began with, also by those whose access counts for nothing; behind the last collective they go their own ways. What
// other threads write is read past the first cache (__ldcv).
//
// This text compiles with nvcc and NVRTC, and with g++ behind testing/simt/simt.h, which gives CUDA's words.
#pragma once

#include "backends/device/lanes.h"
#include "backends/device/tracker.h"
#include "backends/device/values.h"

namespace leadline::device {
namespace {

// The lanes that called a patch together. `lane` is this one.
struct Warp {
  u32 mask;
  u32 lane;
  LEADLINE_DEVICE u32 first() const { return static_cast<u32>(__ffs(static_cast<int>(mask))) - 1; }
  LEADLINE_DEVICE bool leads() const { return lane == first(); }
  LEADLINE_DEVICE u32 count() const { return static_cast<u32>(__popc(mask)); }
  LEADLINE_DEVICE u32 rank() const { return static_cast<u32>(__popc(mask & ((1u << lane) - 1))); }
};

LEADLINE_DEVICE inline Warp this_warp() { return {__activemask(), this_lane()}; }

// Null where this launch is not measured.
LEADLINE_DEVICE inline Tracker* tracker_of(void* user) {
  auto* tracker = static_cast<Tracker*>(user);
  if (tracker == nullptr || tracker->setup.version != kVersion) return nullptr;
  return tracker->setup.range_count != 0 || tracker->setup.want != 0 ? tracker : nullptr;
}

LEADLINE_DEVICE inline u32 hash_of(u64 pc) { return static_cast<u32>((pc * 0x9e3779b97f4a7c15ull) >> 32); }

// The range that holds `address`, or kNone: between ranges there are gaps.
LEADLINE_DEVICE inline u32 find(const Setup& setup, u64 address, u32 hint) {
  if (hint < setup.range_count && address >= setup.ranges[hint].begin && address < setup.ranges[hint].end) return hint;
  u32 low = 0;
  u32 high = setup.range_count;
  LEADLINE_ROLLED
  while (low < high) {
    const u32 middle = (low + high) / 2;
    if (setup.ranges[middle].begin <= address) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low != 0 && address < setup.ranges[low - 1].end ? low - 1 : kNone;
}

LEADLINE_DEVICE inline void mark_page(const Setup& setup, const Range& range, Sums& sums, u64 page) {
  u32* word = setup.page_words + range.first_word + page / 32;
  const u32 bit = 1u << (page % 32);
  // Most accesses find their page marked, and reading costs less than an atomic.
  if ((__ldcv(word) & bit) == 0 && (fetch_or(word, bit) & bit) == 0) add(&sums.pages, 1);
}

LEADLINE_DEVICE inline void widen(Sums& sums, u64 first, u64 end) {
  if (__ldcv(&sums.least_inverted) < ~first) raise(&sums.least_inverted, ~first);
  if (__ldcv(&sums.most) < end) raise(&sums.most, end);
}

// `count` accesses of `asked` bytes, of which `inside` count.
LEADLINE_DEVICE inline void add_accesses(Tracker& tracker, u32 slot, u32 kind, u64 count, u32 asked, u64 inside) {
  Sums& sums = tracker.setup.sums[slot];
  u32 size = 31 - static_cast<u32>(__clz(static_cast<int>(asked)));
  if (size >= kSizes) size = kSizes - 1;
  add(&sums.counts[kind][size], count);
  const u64 whole = 1 << size;
  if (inside != whole) add(&sums.missing[kind], count * (whole - inside));
  if (__ldcv(&sums.listed) == 0 && exchange(&sums.listed, 1) == 0) {
    tracker.setup.touched[fetch_add(&tracker.touched_count, 1)] = slot;
  }
}

LEADLINE_DEVICE inline void look_at_values(const Setup& setup, const Range& range, Sums& sums,
                                           [[maybe_unused]] u64 address, u32 bytes, const void* data) {
  const u32 each = element_bytes(range.element);
  u64 nan = 0;
  u64 inf = 0;
  u64 counted = 0;
#ifdef LEADLINE_USER_STORE
  if (each == 0) ll_on_store(ll_access{{0, &counted}, address, bytes, 0});
#endif
  LEADLINE_ROLLED
  for (u32 at = 0; each != 0 && at + each <= bytes; at += each) {
    const Bits value = bits_of(data, at / each, range.element);
    if ((value.bits & value.exponent) == value.exponent) ((value.bits & value.fraction) != 0 ? nan : inf) += 1;
#ifdef LEADLINE_USER_STORE
    ll_on_store(ll_access{{1, &counted}, address + at, each, value_of(value, range.element)});
#endif
  }
  if ((setup.want & kWantValues) != 0) {
    if (nan != 0) add(&sums.nan, nan);
    if (inf != 0) add(&sums.inf, inf);
  }
  if (counted != 0) add(&sums.counted, counted);
}

struct Access {
  u64 address;
  u64 pc;
  u32 asked;         // bytes of the instruction: 1 to 16, on newer devices 32
  u32 bytes;         // of them touched; 0: no access, but this lane takes part
  u32 kind;          // Kind
  const void* data;  // the new value of a write, or null
};

LEADLINE_DEVICE inline void keep_raw(Tracker& tracker, const Access& access) {
  if (access.bytes == 0) return;
  const u64 at = fetch_add(&tracker.raw_used, 1);
  if (at < tracker.setup.raw_room) tracker.setup.raw[at] = {access.address, access.pc, access.bytes, access.kind};
}

// One access of each lane of the warp.
LEADLINE_DEVICE inline void sum(Tracker& tracker, const Warp& warp, const Access& access) {
  const Setup& setup = tracker.setup;
  if ((setup.want & kWantRaw) != 0) return keep_raw(tracker, access);

  u32* const hint_place = &tracker.hints[hash_of(access.pc) % kHints];
  const u32 hint = __ldcv(hint_place);
  const u32 slot = access.bytes != 0 ? find(setup, access.address, hint) : kNone;
  u64 offset = 0;
  u32 inside = access.bytes;
  if (slot != kNone) {
    offset = access.address - setup.ranges[slot].begin;
    const u64 left = setup.ranges[slot].end - access.address;
    if (left < inside) inside = static_cast<u32>(left);
  }
  // Lanes with one key sum as one. It has room for 65,536 ranges and none, for three kinds and no access, and for sizes
  // up to 63 bytes.
  const u32 key = (slot == kNone ? kMostRanges : slot) | (access.bytes != 0 ? access.kind : kKinds) << 17 |
                  inside << 19 | access.asked << 25;
  const u32 group = __match_any_sync(warp.mask, key);
  const u32 before = group & ((1u << warp.lane) - 1);
  const u32 behind = group & (0xfffffffeu << warp.lane);
  const u32 previous = before != 0 ? 31 - static_cast<u32>(__clz(static_cast<int>(before))) : warp.lane;
  const u32 next = behind != 0 ? static_cast<u32>(__ffs(static_cast<int>(behind))) - 1 : warp.lane;
  const u64 previous_offset = __shfl_sync(warp.mask, offset, static_cast<int>(previous));
  const u64 next_offset = __shfl_sync(warp.mask, offset, static_cast<int>(next));
  // That was the last collective.
  if (access.bytes == 0) return;
  const u64 count = static_cast<u64>(__popc(group));
  if (slot == kNone) {
    if (before == 0) {
      add(&tracker.totals.outside, count);
      add(&tracker.totals.outside_bytes, count * access.bytes);
    }
    return;
  }
  const Range& range = setup.ranges[slot];
  Sums& sums = setup.sums[slot];
  if (before == 0) {
    add_accesses(tracker, slot, access.kind, count, access.asked, inside);
    if (slot != hint) *hint_place = slot;
  }
  if (inside != access.bytes) add(&tracker.totals.overrun_bytes, u64{access.bytes - inside});
  // The least and the greatest offset are among those that no neighbour of the group exceeds: few, where lanes go up.
  if (before == 0 || behind == 0 || previous_offset > offset || next_offset < offset) {
    widen(sums, offset, offset + inside);
  }
  if ((setup.want & kWantPages) != 0) {
    const u64 page = offset >> setup.page_shift;
    const u64 last = (offset + inside - 1) >> setup.page_shift;
    // The lane before marks the page where it is the same.
    if (before == 0 || previous_offset >> setup.page_shift != page) mark_page(setup, range, sums, page);
    if (last != page) mark_page(setup, range, sums, last);
  }
  if (access.data != nullptr && access.kind == kWrite) {
    look_at_values(setup, range, sums, access.address, inside, access.data);
  }
}

// One copy of many bytes for the whole warp. No collective: one lane does it.
LEADLINE_DEVICE inline void sum_bulk(Tracker& tracker, const Warp& warp, u64 address, u64 pc, u64 bytes, u32 kind) {
  const Setup& setup = tracker.setup;
  if (!warp.leads() || bytes == 0) return;
  if ((setup.want & kWantRaw) != 0) return keep_raw(tracker, {address, pc, 16, static_cast<u32>(bytes), kind, nullptr});
  const u32 slot = find(setup, address, kNone);
  if (slot == kNone) {
    add(&tracker.totals.outside, 1);
    add(&tracker.totals.outside_bytes, bytes);
    return;
  }
  const Range& range = setup.ranges[slot];
  Sums& sums = setup.sums[slot];
  const u64 offset = address - range.begin;
  const u64 inside = bytes < range.end - address ? bytes : range.end - address;
  add_accesses(tracker, slot, kind, 1, 16, inside);
  if (inside != bytes) add(&tracker.totals.overrun_bytes, bytes - inside);
  widen(sums, offset, offset + inside);
  if ((setup.want & kWantPages) != 0) {
    const u64 last = (offset + inside - 1) >> setup.page_shift;
    LEADLINE_ROLLED
    for (u64 page = offset >> setup.page_shift; page <= last; ++page) mark_page(setup, range, sums, page);
  }
}

}  // namespace
}  // namespace leadline::device
