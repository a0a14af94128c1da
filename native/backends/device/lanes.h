// What the text needs of the device beyond CUDA's own words: which lane this is, and how many lanes its warp has.
//
// Without a CUDA compiler the stand-in (testing/simt/simt.h), included first, gives CUDA's words and these.
#pragma once

#include "backends/device/tracker.h"

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
namespace leadline::device {
namespace {

LEADLINE_DEVICE inline unsigned this_lane() {
  unsigned lane;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  return lane;
}

// Lanes that this thread's warp was started with: the last warp of a block may have fewer than 32.
LEADLINE_DEVICE inline unsigned lanes_of_warp() {
  const unsigned threads = blockDim.x * blockDim.y * blockDim.z;
  const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  const unsigned before = thread & ~31u;
  return threads - before < 32 ? threads - before : 32;
}

}  // namespace
}  // namespace leadline::device
#endif
