// How long the threads of a block wait for each other at its barriers: from the first arrival to the last.
//
// A block has a place of its own while it runs. Where another one comes to that place meanwhile, its waits are not
// followed and are counted as lost, and the place is given to nobody else in this launch: a block of which some warps
// were counted and some were not would mix one barrier with the next. Threads that have ended are waited for by nobody.
// All of this runs before the barrier's own instruction, so no thread is past a barrier that is still being counted.
#pragma once

#include "backends/device/instructions.h"
#include "backends/device/lanes.h"
#include "backends/device/stage.h"

namespace leadline::device {
namespace {

// Barrier::state: the warps that came in its lower half, their lanes above.
constexpr u32 kLanesAt = 32;
constexpr u64 kClosing = u64{1} << 62;
constexpr u64 kBroken = u64{1} << 63;  // threads came that cannot have: not followed until the block has ended
constexpr u32 kThreadsAt = 48;         // of Barrier::pc_and_threads

// The vendor's flags of a barrier.
constexpr u32 kUnalignedAllowed = 1;  // lanes of a warp may come apart from each other
constexpr u32 kSynchronizes = 2;      // else threads arrive and go on

// Null where another block has the place.
LEADLINE_DEVICE inline Block* this_block(Tracker& tracker) {
  const u64 number = block_of_grid();
  Block& place = tracker.setup.blocks[number % tracker.setup.block_room];
  const u64 self = number + 1;
  u64 owner = __ldcv(&place.owner);
  LEADLINE_ROLLED
  while ((owner & ~kRetired) != self) {
    if ((owner & kRetired) != 0) return nullptr;
    const u64 wanted = owner == 0 ? self : owner | kRetired;
    const u64 seen = replace_if(&place.owner, owner, wanted);
    if (seen != owner) {
      owner = seen;
      continue;
    }
    if (owner == 0) return &place;
    fetch_add(&tracker.retired, 1);
    return nullptr;
  }
  return &place;
}

// Where all have come, one of those that see it, at the clock `now`, tells how long the first has waited.
LEADLINE_DEVICE inline void close_if_all_came(Tracker& tracker, const Block& block, Barrier& barrier, u64 state,
                                              u64 now) {
  if (state == 0 || state >= kClosing) return;
  const u64 asked = __ldcv(&barrier.pc_and_threads);
  const u64 expected = asked >> kThreadsAt != 0 ? asked >> kThreadsAt : threads_of_block() - __ldcv(&block.ended);
  if (state >> kLanesAt != expected) return;
  if (replace_if(&barrier.state, state, kClosing) != state) return;
  const u64 first = __ldcv(&barrier.first_inverted);
  const u64 arrived = __ldcv(&barrier.last);
  const u64 last = arrived < now ? now : arrived;
  Instruction* one = instruction_at(tracker.setup, asked & ((u64{1} << kThreadsAt) - 1));
  if (one != nullptr) {
    add(&one->meetings, 1);
    if (first != 0 && last > ~first) add(&one->waited, last - ~first);
  }
  barrier.first_inverted = 0;
  barrier.last = 0;
  __threadfence();
  replace_if(&barrier.state, kClosing, 0);
}

// `threads`: as the instruction says, 0 for all of the block.
LEADLINE_DEVICE inline void arrive(Tracker& tracker, const Warp& warp, u64 pc, u32 index, u32 threads, u32 flags) {
  if ((tracker.setup.want & kWantBarriers) == 0 || !warp.leads()) return;
  Block* const block = index < kBarriers ? this_block(tracker) : nullptr;
  if (block == nullptr) {
    add(&tracker.totals.lost_arrivals, 1);
    return;
  }
  Barrier& barrier = block->barriers[index];
  const u64 now = cycles();
  if ((flags & kSynchronizes) != 0) raise(&barrier.first_inverted, ~now);
  raise(&barrier.last, now);
  barrier.pc_and_threads = pc | u64{threads} << kThreadsAt;
  __threadfence();
  const u64 self = u64{1} << warp_of_block();
  const bool whole = warp.count() == lanes_of_warp();
  u64 before = __ldcv(&barrier.state);
  u64 after = 0;
  LEADLINE_ROLLED
  do {
    // A count of threads is one of whole warps to the device, whoever of them has ended.
    const bool odd = threads != 0 && !whole;
    const bool again = (before & self) != 0 && (whole || (flags & kUnalignedAllowed) == 0);
    after = before >= kClosing || odd || again ? kBroken : (before | self) + (u64{warp.count()} << kLanesAt);
    const u64 seen = replace_if(&barrier.state, before, after);
    if (seen == before) break;
    before = seen;
  } while (true);
  if (after == kBroken) {
    const u64 counted = before >= kClosing ? 0 : static_cast<u64>(__popc(static_cast<u32>(before)));
    add(&tracker.totals.lost_arrivals, 1 + counted);
    return;
  }
  close_if_all_came(tracker, *block, barrier, after, now);
}

// Lanes that end: who waits for all threads of the block waits for them no longer. Who leaves last clears the place.
LEADLINE_DEVICE inline void end_in_block(Tracker& tracker, const Warp& warp) {
  if ((tracker.setup.want & kWantBarriers) == 0 || !warp.leads()) return;
  Block* const block = this_block(tracker);
  if (block == nullptr) return;
  const u64 now = cycles();
  fetch_add(&block->ended, warp.count());
  __threadfence();
  LEADLINE_ROLLED
  for (u32 index = 0; index < kBarriers; ++index) {
    Barrier& barrier = block->barriers[index];
    const u64 state = __ldcv(&barrier.state);
    if (__ldcv(&barrier.pc_and_threads) >> kThreadsAt == 0) close_if_all_came(tracker, *block, barrier, state, now);
  }
  __threadfence();
  if (fetch_add(&block->left, warp.count()) + warp.count() != threads_of_block()) return;
  LEADLINE_ROLLED
  for (u32 index = 0; index < kBarriers; ++index) {
    Barrier& barrier = block->barriers[index];
    const u64 state = __ldcv(&barrier.state);
    if (state < kClosing) add(&tracker.totals.lost_arrivals, static_cast<u64>(__popc(static_cast<u32>(state))));
    barrier = {};
  }
  block->ended = 0;
  block->left = 0;
  __threadfence();
  replace_if(&block->owner, block_of_grid() + 1, 0);  // not where another block has come: see above
}

LEADLINE_DEVICE inline void clear_retired(const Setup& setup, u32 rank, u32 lanes) {
  LEADLINE_ROLLED
  for (u64 at = rank; at < setup.block_room; at += lanes) {
    if (__ldcv(&setup.blocks[at].owner) != 0) setup.blocks[at].owner = 0;
  }
}

}  // namespace
}  // namespace leadline::device
