// Theoretical occupancy and waves of one launch, from what the record and the device say.
#pragma once

#include "gpu/device.h"

namespace leadline::nvidia {

// The rules of the CUDA occupancy calculator (CUDA C++ Programming Guide, "Multiprocessor level"): the least of what
// threads, blocks, registers and shared memory allow, with the hardware's allocation granularity.
gpu::Occupancy theoretical_occupancy(const gpu::LaunchShape& launch, const gpu::DeviceInfo& device) noexcept;

// What the shared parts must know of NVIDIA.
inline constexpr gpu::Vendor kVendor{"CUDA graph", theoretical_occupancy};

}  // namespace leadline::nvidia
