// What the text needs of the device beyond CUDA's own words: which lane this is, how many lanes its warp has, and
// atomics.
//
// CUDA's own atomics are not used: a compiler that does not know a pointer to be one to global memory adds three more
// ways for other memory, so that the text had twice as many instructions. Without a CUDA compiler the stand-in
// (testing/simt/simt.h), included first, gives CUDA's words and these.
#pragma once

#include "backends/device/tracker.h"

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
namespace leadline::device {
namespace {

LEADLINE_DEVICE inline u32 this_lane() {
  u32 lane;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  return lane;
}

// Lanes that this thread's warp was started with: the last warp of a block may have fewer than 32.
LEADLINE_DEVICE inline u32 lanes_of_warp() {
  const u32 threads = blockDim.x * blockDim.y * blockDim.z;
  const u32 thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  const u32 before = thread & ~31u;
  return threads - before < 32 ? threads - before : 32;
}

LEADLINE_DEVICE inline u32 threads_of_block() { return blockDim.x * blockDim.y * blockDim.z; }

LEADLINE_DEVICE inline u32 warp_of_block() {
  return (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) / 32;
}

LEADLINE_DEVICE inline u64 block_of_grid() {
  return blockIdx.x + u64{gridDim.x} * (blockIdx.y + u64{gridDim.y} * blockIdx.z);
}

// Of the multiprocessor: threads of a block share it.
LEADLINE_DEVICE inline u64 cycles() {
  u64 clock;
  asm volatile("mov.u64 %0, %%clock64;" : "=l"(clock));
  return clock;
}

LEADLINE_DEVICE inline u64 global_address(const void* at) {
  u64 address;
  asm("cvta.to.global.u64 %0, %1;" : "=l"(address) : "l"(at));
  return address;
}

LEADLINE_DEVICE inline void add(u64* at, u64 value) {
  asm volatile("red.global.add.u64 [%0], %1;" ::"l"(global_address(at)), "l"(value) : "memory");
}

LEADLINE_DEVICE inline void raise(u64* at, u64 value) {  // to the greater of the two
  asm volatile("red.global.max.u64 [%0], %1;" ::"l"(global_address(at)), "l"(value) : "memory");
}

// These give what was there before.
LEADLINE_DEVICE inline u64 fetch_add(u64* at, u64 value) {
  u64 before;
  asm volatile("atom.global.add.u64 %0, [%1], %2;" : "=l"(before) : "l"(global_address(at)), "l"(value) : "memory");
  return before;
}

LEADLINE_DEVICE inline u32 fetch_add(u32* at, u32 value) {
  u32 before;
  asm volatile("atom.global.add.u32 %0, [%1], %2;" : "=r"(before) : "l"(global_address(at)), "r"(value) : "memory");
  return before;
}

LEADLINE_DEVICE inline u32 fetch_or(u32* at, u32 bits) {
  u32 before;
  asm volatile("atom.global.or.b32 %0, [%1], %2;" : "=r"(before) : "l"(global_address(at)), "r"(bits) : "memory");
  return before;
}

LEADLINE_DEVICE inline u32 exchange(u32* at, u32 value) {
  u32 before;
  asm volatile("atom.global.exch.b32 %0, [%1], %2;" : "=r"(before) : "l"(global_address(at)), "r"(value) : "memory");
  return before;
}

LEADLINE_DEVICE inline u64 replace_if(u64* at, u64 expected, u64 value) {
  u64 before;
  asm volatile("atom.global.cas.b64 %0, [%1], %2, %3;"
               : "=l"(before)
               : "l"(global_address(at)), "l"(expected), "l"(value)
               : "memory");
  return before;
}

}  // namespace
}  // namespace leadline::device
#endif
