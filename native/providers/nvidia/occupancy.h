// Theoretical occupancy and waves of one launch, from what the record and the device say.
#pragma once

#include <cstdint>

#include "providers/nvidia/driver.h"

namespace leadline::nvidia {

struct LaunchShape {
  std::int64_t blocks = 0;  // in the grid
  std::int32_t block_threads = 0;
  std::int32_t registers_per_thread = 0;
  std::int64_t static_shared_bytes = 0;    // per block
  std::int64_t dynamic_shared_bytes = 0;   // per block
  std::int64_t shared_carveout_bytes = 0;  // shared memory of a multiprocessor during the kernel; 0: the device's limit
};

struct Occupancy {
  std::int32_t blocks_per_multiprocessor = 0;  // 0: the device's limits are not known
  std::int64_t occupancy_millionths = 0;       // warps resident / warps possible
  std::int64_t waves_thousandths = 0;          // blocks / (blocks resident on the whole device)
};

// The rules of the CUDA occupancy calculator (CUDA C++ Programming Guide, "Multiprocessor level"): the least of what
// threads, blocks, registers and shared memory allow, with the hardware's allocation granularity.
Occupancy theoretical_occupancy(const LaunchShape& launch, const DeviceInfo& device) noexcept;

}  // namespace leadline::nvidia
