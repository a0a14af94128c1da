// The end of a launch: its last threads write what was summed to pinned memory and leave the tracker as it was.
//
// Order of the writes: rows, page words, instructions; a fence for the system; the result; a fence; `complete`.
#pragma once

#include "backends/device/barriers.h"
#include "backends/device/stage.h"

namespace leadline::device {
namespace {

LEADLINE_DEVICE inline void write_row(const Setup& setup, const Sums& sums, u32 slot, Row& row) {
  row.object = setup.ranges[slot].object;
  row.range = slot;
  row.first_page = 0;
  row.word_count = 0;
  row.first_word = 0;
  u64 counts[kKinds];
  u64 bytes[kKinds];
  LEADLINE_ROLLED
  for (u32 kind = 0; kind < kKinds; ++kind) {
    counts[kind] = 0;
    bytes[kind] = 0 - __ldcv(&sums.missing[kind]);
    LEADLINE_ROLLED
    for (u32 size = 0; size < kSizes; ++size) {
      const u64 count = __ldcv(&sums.counts[kind][size]);
      counts[kind] += count;
      bytes[kind] += count << size;
    }
  }
  row.reads = counts[kRead];
  row.writes = counts[kWrite];
  row.atomics = counts[kAtomic];
  row.read_bytes = bytes[kRead];
  row.written_bytes = bytes[kWrite];
  row.atomic_bytes = bytes[kAtomic];
  row.least = ~__ldcv(&sums.least_inverted);
  row.most = __ldcv(&sums.most);
  row.pages = __ldcv(&sums.pages);
  row.nan = __ldcv(&sums.nan);
  row.inf = __ldcv(&sums.inf);
  row.counted = __ldcv(&sums.counted);
}

LEADLINE_DEVICE inline void clear(void* at, u64 bytes, u32 rank, u32 lanes) {
  auto* words = static_cast<u32*>(at);
  LEADLINE_ROLLED
  for (u64 word = rank; word < bytes / 4; word += lanes) words[word] = 0;
}

// Page words of one range: copied where there is room, cleared in any case. Returns how many were copied.
LEADLINE_DEVICE inline u32 take_pages(const Setup& setup, u32 slot, u32 used, Row* row, u32 rank, u32 lanes) {
  const Sums& sums = setup.sums[slot];
  const u64 first = (~__ldcv(&sums.least_inverted) >> setup.page_shift) / 32;
  const u64 count = ((__ldcv(&sums.most) - 1) >> setup.page_shift) / 32 + 1 - first;
  u32* const words = setup.page_words + setup.ranges[slot].first_word + first;
  const bool kept = row != nullptr && used + count <= setup.word_room;
  LEADLINE_ROLLED
  for (u64 at = rank; at < count; at += lanes) {
    if (kept) setup.words[used + at] = __ldcv(words + at);
    words[at] = 0;
  }
  if (!kept) return 0;
  if (rank == 0) {
    row->first_page = static_cast<u32>(first * 32);
    row->word_count = static_cast<u32>(count);
    row->first_word = used;
  }
  return static_cast<u32>(count);
}

LEADLINE_DEVICE inline void take_instructions(const Setup& setup, const Warp& warp, Result& head) {
  LEADLINE_ROLLED
  for (u32 base = 0; base < setup.instruction_room; base += warp.count()) {  // as often for every lane
    const u32 at = base + warp.rank();
    const bool used = at < setup.instruction_room && __ldcv(&setup.instructions[at].pc) != 0;
    const u32 all = __ballot_sync(warp.mask, used);
    if (used) {
      Instruction& one = setup.instructions[at];
      const u32 place = head.instructions + static_cast<u32>(__popc(all & ((1u << warp.lane) - 1)));
      if (place < setup.result_instruction_room) {
        setup.result_instructions[place] = {
            __ldcv(&one.pc),    __ldcv(&one.warps), __ldcv(&one.threads), __ldcv(&one.split),    __ldcv(&one.conflicts),
            __ldcv(&one.bytes), __ldcv(&one.point), __ldcv(&one.kind),    __ldcv(&one.meetings), __ldcv(&one.waited)};
      }
      one = {};
    }
    head.instructions += static_cast<u32>(__popc(all));
  }
  if (head.instructions > setup.result_instruction_room) {
    head.lost_instructions = head.instructions - setup.result_instruction_room;
    head.instructions = setup.result_instruction_room;
  }
}

LEADLINE_DEVICE inline void finish(Tracker& tracker, const Warp& warp) {
  const Setup& setup = tracker.setup;
  const u32 rank = warp.rank();
  const u32 lanes = warp.count();
  const u32 touched = __ldcv(&tracker.touched_count);
  Result head{};  // as every lane sees it
  head.threads = setup.threads_expected;
  LEADLINE_ROLLED
  for (u32 index = 0; index < touched; ++index) {
    const u32 slot = __ldcv(&setup.touched[index]);
    Row* row = index < setup.row_room ? &setup.rows[index] : nullptr;
    if (row != nullptr) {
      ++head.rows;
      if (rank == 0) write_row(setup, setup.sums[slot], slot, *row);
    } else {
      ++head.lost_rows;
    }
    if ((setup.want & kWantPages) != 0) {
      const u32 words = take_pages(setup, slot, head.words, row, rank, lanes);
      head.words += words;
      if (words == 0 && row != nullptr) ++head.lost_words;
    }
  }
  if (setup.instructions != nullptr) take_instructions(setup, warp, head);
  head.raw = __ldcv(&tracker.raw_used);
  LEADLINE_ROLLED
  for (u32 word = rank; word < sizeof(Totals) / 8; word += lanes) {
    reinterpret_cast<u64*>(&setup.result->totals)[word] = __ldcv(reinterpret_cast<const u64*>(&tracker.totals) + word);
  }
  __syncwarp(warp.mask);  // all has been read
  LEADLINE_ROLLED
  for (u32 index = 0; index < touched; ++index) {
    clear(&setup.sums[__ldcv(&setup.touched[index])], sizeof(Sums), rank, lanes);
  }
  clear(&tracker.totals, sizeof(Totals), rank, lanes);
  if (__ldcv(&tracker.retired) != 0) clear_retired(setup, rank, lanes);
  __syncwarp(warp.mask);  // nobody reads it any more
  if (rank == 0) {
    tracker.threads_done = 0;
    tracker.touched_count = 0;
    tracker.retired = 0;
    tracker.raw_used = 0;
  }
  __threadfence_system();
  __syncwarp(warp.mask);
  if (rank != 0) return;
  Result& result = *setup.result;
  result.threads = head.threads;
  result.rows = head.rows;
  result.lost_rows = head.lost_rows;
  result.words = head.words;
  result.lost_words = head.lost_words;
  result.instructions = head.instructions;
  result.lost_instructions = head.lost_instructions;
  result.raw = head.raw;
  __threadfence_system();
  *const_cast<volatile u64*>(&result.complete) = setup.launch;
}

// Lanes that end together; whoever brings the last of all threads finishes.
LEADLINE_DEVICE inline void leave(Tracker& tracker, const Warp& warp) {
  const Setup& setup = tracker.setup;
  if (setup.threads_expected == 0) return;
  __threadfence();
  __syncwarp(warp.mask);  // every lane's sums are behind its fence
  u64 done = 0;
  if (warp.leads()) done = fetch_add(&tracker.threads_done, warp.count());
  done = __shfl_sync(warp.mask, done, static_cast<int>(warp.first()));
  if (done + warp.count() != setup.threads_expected) return;
  __threadfence();
  finish(tracker, warp);
}

}  // namespace
}  // namespace leadline::device
