// What is counted of instructions: how often warps execute each, with how many of their lanes, and how often lanes meet
// in a bank of shared memory.
#pragma once

#include "backends/device/lanes.h"
#include "backends/device/stage.h"

namespace leadline::device {
namespace {

constexpr u32 kProbes = 32;

LEADLINE_DEVICE inline Instruction* instruction_at(const Setup& setup, u64 pc) {
  const u32 most = setup.instruction_room - 1;
  u32 at = hash_of(pc) & most;
  LEADLINE_ROLLED
  for (u32 probe = 0; probe < kProbes && probe <= most; ++probe, at = (at + 1) & most) {
    Instruction& one = setup.instructions[at];
    u64 owner = __ldcv(&one.pc);
    if (owner == 0) {
      owner = replace_if(&one.pc, 0, pc);
      if (owner == 0) return &one;
    }
    if (owner == pc) return &one;
  }
  return nullptr;
}

// One lane of the warp counts for all. `bytes` of one lane.
LEADLINE_DEVICE inline void count_call(Tracker& tracker, const Warp& warp, u32 point, u64 pc, u32 bytes, u32 kind,
                                       u32 conflicts) {
  const Setup& setup = tracker.setup;
  if (!warp.leads()) return;
  if ((setup.want & kWantPoints) != 0 || point == kTma) {
    add(&tracker.totals.points[point].warps, 1);
    add(&tracker.totals.points[point].threads, warp.count());
  }
  if (conflicts != 0) add(&tracker.totals.conflicts, conflicts);
  if ((setup.want & kWantInstructions) == 0 || setup.instruction_room == 0) return;
  Instruction* one = instruction_at(setup, pc);
  if (one == nullptr) {
    add(&tracker.totals.lost_instructions, 1);
    return;
  }
  one->point = point;  // the same for every warp
  one->kind = kind;
  add(&one->warps, 1);
  add(&one->threads, warp.count());
  if (warp.count() != lanes_of_warp()) add(&one->split, 1);
  if (conflicts != 0) add(&one->conflicts, conflicts);
  if (bytes != 0) add(&one->bytes, u64{bytes} * warp.count());
}

// Passes beyond the first that lanes need, since they meet in a bank. Shared memory gives 128 bytes in a pass: 32 words
// of 4 bytes to a warp, 16 of 8 to half of it, 8 of 16 to a quarter; lanes that ask for the same word meet nobody.
LEADLINE_DEVICE inline u32 bank_conflicts(const Warp& warp, u32 offset, u32 bytes) {
  const u32 unit = bytes <= 4 ? 4 : bytes;
  const u32 lanes = 128 / unit;
  const u32 word = offset / unit;
  const u32 part = warp.lane / lanes;
  const u32 same_word = __match_any_sync(warp.mask, u64{part} << 32 | word);
  const u32 distinct = __ballot_sync(warp.mask, (same_word & ((1u << warp.lane) - 1)) == 0);
  const u32 same_bank = __match_any_sync(warp.mask, part << 8 | word % lanes) & distinct;
  const u32 passes = static_cast<u32>(__popc(same_bank));
  u32 beyond = 0;
  LEADLINE_ROLLED
  for (u32 one = 0; one < 32 / lanes; ++one) {
    // The greatest number of passes of this part, bit by bit from above.
    bool candidate = part == one;
    u32 most = 0;
    LEADLINE_ROLLED
    for (int bit = 5; bit >= 0; --bit) {
      const bool has = candidate && (passes >> bit & 1) != 0;
      if (__ballot_sync(warp.mask, has) != 0) {
        most |= 1u << bit;
        candidate = has;
      }
    }
    if (most > 1) beyond += most - 1;
  }
  return beyond;
}

}  // namespace
}  // namespace leadline::device
