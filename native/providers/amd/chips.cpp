// Numbers from LLVM's AMDGPU back end, which compiles for these devices (AMDGPUBaseInfo.cpp: getMaxWavesPerEU,
// getEUsPerCU, getTotalNumVGPRs, getVGPRAllocGranule, getTotalNumSGPRs, getMaxWorkGroupsPerCU; AMDGPU.td and
// GCNProcessors.td: which processor has 1.5 times the VGPRs, and how much local memory; GCNSubtarget for its
// granularity), and for local memory from AMD's table of accelerator and GPU hardware specifications (ROCm
// documentation).
#include "providers/amd/chips.h"

#include <algorithm>

namespace leadline::amd {
namespace {

constexpr std::int64_t round_up(std::int64_t value, std::int64_t to) { return (value + to - 1) / to * to; }

constexpr std::int32_t kKiB = 1024;

// gfx9 before gfx90a (Vega, MI50, MI100).
constexpr Chip kVega{.max_waves_per_simd = 10,
                     .simds = 4,
                     .vgprs = 256,
                     .vgpr_granule = 4,
                     .sgprs = 800,
                     .sgpr_granule = 16,
                     .lds_bytes = 64 * kKiB,
                     .lds_granule = 512,
                     .max_groups = 16};

// gfx90a, gfx942 (MI200, MI300).
constexpr Chip cdna() {
  Chip chip = kVega;
  chip.max_waves_per_simd = 8;
  chip.vgprs = 512;
  chip.vgpr_granule = 8;
  chip.unified_agprs = true;
  return chip;
}

// gfx950 (MI350): more local memory in larger units.
constexpr Chip cdna4() {
  Chip chip = cdna();
  chip.lds_bytes = 160 * kKiB;
  chip.lds_granule = 1280;
  return chip;
}

// gfx10 and later, in the mode of work-group processors that compilers choose.
constexpr Chip rdna(bool second_or_later, bool more_vgprs, bool wave32) {
  const std::int32_t lanes = wave32 ? 2 : 1;  // a register of a wavefront of 64 takes two
  Chip chip{.max_waves_per_simd = second_or_later ? 16 : 20,
            .simds = 4,
            .vgprs = 512 * lanes,
            .vgpr_granule = (second_or_later ? 8 : 4) * lanes,
            .sgprs = 0,
            .sgpr_granule = 0,
            .lds_bytes = 128 * kKiB,
            .lds_granule = 512,
            .max_groups = 32,
            .compute_units = 2};
  if (more_vgprs) {
    chip.vgprs = 768 * lanes;
    chip.vgpr_granule = 12 * lanes;
  }
  return chip;
}

}  // namespace

Chip chip_of(std::int32_t major, std::int32_t minor, std::int32_t stepping, std::int32_t wave) noexcept {
  const bool wave32 = wave == 32;
  if (major == 9) {
    if (minor == 5) return cdna4();
    if (minor == 4 || (minor == 0 && stepping == 10)) return cdna();
    return minor == 0 ? kVega : Chip{};
  }
  if (major == 10) return rdna(minor >= 3, false, wave32);
  if (major == 11) {
    const bool more = (minor == 0 && stepping <= 1) || (minor == 5 && stepping == 1);
    return rdna(true, more, wave32);
  }
  if (major == 12 && minor == 0) return rdna(true, true, wave32);
  return {};
}

gpu::Occupancy theoretical_occupancy(const gpu::LaunchShape& launch, const gpu::DeviceInfo& device) noexcept {
  const Chip chip = chip_of(device.major, device.minor, device.stepping, device.warp_size);
  if (chip.simds == 0 || device.warp_size <= 0 || launch.block_threads <= 0) return {};
  const std::int64_t waves_of_group = (launch.block_threads + device.warp_size - 1) / device.warp_size;
  std::int64_t waves = chip.max_waves_per_simd;  // per SIMD
  const std::int64_t vgprs = chip.unified_agprs
                                 ? round_up(launch.registers_per_thread, 4) + launch.accumulation_registers
                                 : std::max(launch.registers_per_thread, launch.accumulation_registers);
  if (vgprs > 0) waves = std::min(waves, chip.vgprs / round_up(vgprs, chip.vgpr_granule));
  std::int64_t groups = waves * chip.simds / waves_of_group;
  if (waves_of_group > 1) groups = std::min<std::int64_t>(groups, chip.max_groups);
  const std::int64_t lds = round_up(launch.static_shared_bytes + launch.dynamic_shared_bytes, chip.lds_granule);
  if (lds > 0) groups = std::min(groups, chip.lds_bytes / lds);

  gpu::Occupancy result;
  result.blocks_per_multiprocessor = static_cast<std::int32_t>(groups);
  if (groups <= 0) return result;
  const std::int64_t possible = std::int64_t{chip.max_waves_per_simd} * chip.simds;
  result.occupancy_millionths = std::min<std::int64_t>(groups * waves_of_group * 1'000'000 / possible, 1'000'000);
  const std::int64_t units = device.multiprocessors / chip.compute_units;
  if (units > 0) result.waves_thousandths = launch.blocks * 1000 / (groups * units);
  return result;
}

}  // namespace leadline::amd
