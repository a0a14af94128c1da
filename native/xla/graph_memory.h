// What TensorFlow's allocators said of themselves in a window of its profiler, with every allocation and free
// (`MemoryAllocation`, `MemoryDeallocation`: xla/tsl/framework/bfc_allocator.cc,
// tensorflow/core/framework/allocator.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "xla/space.h"

namespace leadline::xla {

// The statistics that it needs of a Space, after others.
void want_memory(Wanted* wanted);

struct Allocator {
  // After one allocation or free.
  struct Moment {
    int64_t at_ps = 0;
    int64_t in_use = 0;
    int64_t reserved = 0;  // what the allocator holds of the system's memory
    int64_t available = 0;
    int64_t fragmentation = 0;  // per mille: how much of what is free is not in the largest free block
    int64_t blocks = 0;         // since the window began, as the next one
    int64_t wasted = 0;         // what blocks in use are larger than was asked for
  };
  uint32_t name = kNoText;  // in Space::strings()
  uint64_t allocations = 0;
  uint64_t frees = 0;
  int64_t requested_bytes = 0;  // over all allocations
  int64_t given_bytes = 0;
  int64_t peak_bytes = 0;
  int64_t reserved_bytes = 0;  // most of it
  int64_t fragmentation = 0;   // the highest
  std::vector<Moment> moments;
};

// In the order in which they first spoke. `most`: moments of each, in stretches of which the one of most bytes in use
// and the last are kept.
// Nothing where `space` was read without want_memory().
std::vector<Allocator> allocators(const Space& space, size_t most);

}  // namespace leadline::xla
