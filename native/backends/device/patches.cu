// The functions that the Compute Sanitizer calls from patched instructions (LEADLINE_DEVICE_PATCHES): their parameters
// are the vendor's, declared here by ourselves; tests/nvidia/test_device_stage.py compares them with its headers.
#include "backends/device/barriers.h"
#include "backends/device/finish.h"
#include "backends/device/instructions.h"
#include "backends/device/stage.h"

using namespace leadline::device;

#define LEADLINE_PATCH extern "C" LEADLINE_DEVICE __attribute__((noinline, used)) int

namespace {

// The vendor's flags of a memory access.
constexpr u32 kFlagRead = 1;
constexpr u32 kFlagWrite = 2;
constexpr u32 kFlagAtomicOfSystem = 4;
constexpr u32 kFlagPrefetch = 8;
constexpr u32 kFlagAtomicWriteOnly = 256;

LEADLINE_DEVICE inline u32 kind_of(u32 flags) {
  if ((flags & (kFlagAtomicOfSystem | kFlagAtomicWriteOnly)) != 0) return kAtomic;
  if ((flags & (kFlagRead | kFlagWrite)) == (kFlagRead | kFlagWrite)) return kAtomic;
  return (flags & kFlagWrite) != 0 ? kWrite : kRead;
}

LEADLINE_DEVICE inline int count_only(void* user, u64 pc, u32 point) {
  Tracker* tracker = tracker_of(user);
  if (tracker != nullptr) count_call(*tracker, this_warp(), point, pc, 0, kRead, 0);
  return 0;
}

LEADLINE_DEVICE inline int copy_async(void* user, u64 pc, const void* source, u32 bytes, u32 zeros) {
  Tracker* tracker = tracker_of(user);
  if (tracker == nullptr) return 0;
  const Warp warp = this_warp();
  count_call(*tracker, warp, kMemcpyAsync, pc, bytes, kRead, 0);
  const u32 read = source == nullptr || zeros > bytes ? 0 : bytes - zeros;
  sum(*tracker, warp, {reinterpret_cast<u64>(source), pc, bytes, read, kRead, nullptr});
  return 0;
}

LEADLINE_DEVICE inline int bulk(void* user, u64 pc, u64 address, u64 bytes, u32 kind) {
  Tracker* tracker = tracker_of(user);
  if (tracker == nullptr) return 0;
  const Warp warp = this_warp();
  count_call(*tracker, warp, kBulk, pc, 0, kind, 0);
  sum_bulk(*tracker, warp, address, pc, bytes, kind);
  return 0;
}

}  // namespace

// Also where no access is measured: who only wants launches to complete sets threads_expected and no ranges.
LEADLINE_PATCH leadline_exit(void* user, u64 pc) {
  auto* tracker = static_cast<Tracker*>(user);
  if (tracker == nullptr || tracker->setup.version != kVersion) return 0;
  const Warp warp = this_warp();
  count_call(*tracker, warp, kExit, pc, 0, kRead, 0);
  end_in_block(*tracker, warp);
  leave(*tracker, warp);
  return 0;
}

LEADLINE_PATCH leadline_global(void* user, u64 pc, void* address, u32 bytes, u32 flags, const void* data) {
  Tracker* tracker = tracker_of(user);
  if (tracker == nullptr) return 0;
  const Warp warp = this_warp();
  const u32 kind = kind_of(flags);
  count_call(*tracker, warp, kGlobal, pc, bytes, kind, 0);
  const bool prefetch = (flags & kFlagPrefetch) != 0;
  if (prefetch) add(&tracker->totals.prefetches, 1);
  sum(*tracker, warp, {reinterpret_cast<u64>(address), pc, bytes, prefetch ? 0 : bytes, kind, data});
  return 0;
}

// `zeros` bytes at the end are filled with 0 and not read; a source of nothing may be null.
LEADLINE_PATCH leadline_memcpy_async_filled(void* user, u64 pc, void* source, u32 /*destination*/, u32 bytes,
                                            u32 zeros) {
  return copy_async(user, pc, source, bytes, zeros);
}

LEADLINE_PATCH leadline_memcpy_async(void* user, u64 pc, void* source, u32 /*destination*/, u32 bytes) {
  return copy_async(user, pc, source, bytes, 0);
}

// Blocks of 16 bytes stand in the lower half of `mask_and_size`.
LEADLINE_PATCH leadline_bulk_load(void* user, u64 pc, u64 source, u32 /*destination*/, u32 /*barrier*/,
                                  u32 mask_and_size, u32 /*is_multicast*/) {
  return bulk(user, pc, source, u64{mask_and_size & 0xffff} * 16, kRead);
}

// From 13.3 there is one more argument, whether a mask of bytes stands in the upper half: the whole span counts as
// written.
LEADLINE_PATCH leadline_bulk_store(void* user, u64 pc, u64 destination, u32 /*source*/, u32 mask_and_size) {
  return bulk(user, pc, destination, u64{mask_and_size & 0xffff} * 16, kWrite);
}

LEADLINE_PATCH leadline_bulk_reduce(void* user, u64 pc, u64 destination, u32 /*source*/, u32 blocks) {
  return bulk(user, pc, destination, u64{blocks} * 16, kAtomic);
}

// `offset` is one in the block's window of shared memory.
LEADLINE_PATCH leadline_shared(void* user, u64 pc, void* offset, u32 bytes, u32 flags, const void* /*data*/) {
  Tracker* tracker = tracker_of(user);
  if (tracker == nullptr) return 0;
  const Warp warp = this_warp();
  u32 conflicts = 0;
  if ((tracker->setup.want & kWantConflicts) != 0) {
    conflicts = bank_conflicts(warp, static_cast<u32>(reinterpret_cast<u64>(offset)), bytes);
  }
  count_call(*tracker, warp, kShared, pc, bytes, kind_of(flags), conflicts);
  return 0;
}

LEADLINE_PATCH leadline_local(void* user, u64 pc, void* /*offset*/, u32 bytes, u32 flags, const void* /*data*/) {
  Tracker* tracker = tracker_of(user);
  if (tracker != nullptr) count_call(*tracker, this_warp(), kLocal, pc, bytes, kind_of(flags), 0);
  return 0;
}

LEADLINE_PATCH leadline_matrix(void* user, u64 pc, u32 /*offset*/, u32 bytes, u32 flags, u32 count,
                               const void* /*data*/) {
  Tracker* tracker = tracker_of(user);
  if (tracker != nullptr) count_call(*tracker, this_warp(), kMatrix, pc, bytes * count, kind_of(flags), 0);
  return 0;
}

LEADLINE_PATCH leadline_barrier(void* user, u64 pc, u32 index, u32 threads, u32 flags) {
  Tracker* tracker = tracker_of(user);
  if (tracker == nullptr) return 0;
  const Warp warp = this_warp();
  count_call(*tracker, warp, kBarrier, pc, 0, kRead, 0);
  arrive(*tracker, warp, pc, index, threads, flags);
  return 0;
}

LEADLINE_PATCH leadline_syncwarp(void* user, u64 pc, u32 /*mask*/) { return count_only(user, pc, kSyncwarp); }

LEADLINE_PATCH leadline_cluster_barrier(void* user, u64 pc) { return count_only(user, pc, kClusterBarrier); }

// What a tensor map reaches is not decoded: the host counts these calls as a loss.
LEADLINE_PATCH leadline_tma_load(void* user, u64 pc, u64 /*map*/, u32 /*destination*/, u32 /*barrier*/, int /*c0*/,
                                 int /*c1*/, int /*c2*/, int /*c3*/, int /*c4*/, u32 /*dimensions*/,
                                 u32 /*is_multicast*/, u32 /*mask_and_offsets*/, u32 /*mode*/) {
  return count_only(user, pc, kTma);
}
