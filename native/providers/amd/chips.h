// What one compute unit of each generation of AMD's GPUs holds, and how full a launch can make it.
#pragma once

#include <cstdint>

#include "gpu/device.h"

namespace leadline::amd {

// Of the unit whose wavefronts share local memory: a compute unit before gfx10, a work-group processor of two since.
struct Chip {
  std::int32_t max_waves_per_simd = 0;
  std::int32_t simds = 0;
  std::int32_t vgprs = 0;         // per SIMD and lane, at the device's wavefront size
  std::int32_t vgpr_granule = 0;  // allocated to a wavefront in units of this
  std::int32_t sgprs = 0;         // per SIMD; 0: they never limit
  std::int32_t sgpr_granule = 0;
  std::int32_t lds_bytes = 0;
  std::int32_t lds_granule = 0;
  std::int32_t max_groups = 0;     // of more than one wavefront
  std::int32_t compute_units = 1;  // in the unit
  bool unified_agprs = false;      // accumulation registers come from the same file
};

// By architecture (9, 4, 2 for gfx942) and wavefront size; all zero where it is not known.
Chip chip_of(std::int32_t major, std::int32_t minor, std::int32_t stepping, std::int32_t wave) noexcept;

gpu::Occupancy theoretical_occupancy(const gpu::LaunchShape& launch, const gpu::DeviceInfo& device) noexcept;

// What the shared parts must know of AMD.
inline constexpr gpu::Vendor kVendor{"HIP graph", theoretical_occupancy, true};

}  // namespace leadline::amd
