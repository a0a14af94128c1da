#include "providers/nvidia/occupancy.h"

#include <algorithm>
#include <limits>

namespace leadline::nvidia {
namespace {

constexpr std::int64_t round_up(std::int64_t value, std::int64_t to) { return (value + to - 1) / to * to; }

// From compute capability 5.0 on: registers are given to a warp in units of 256, a block's warps in groups of 4.
constexpr std::int64_t kRegisterUnit = 256;
constexpr std::int64_t kWarpGroup = 4;
constexpr std::int64_t shared_unit(std::int32_t major) { return major >= 8 ? 128 : 256; }

}  // namespace

gpu::Occupancy theoretical_occupancy(const gpu::LaunchShape& launch, const gpu::DeviceInfo& device) noexcept {
  if (device.max_threads_per_multiprocessor <= 0 || device.warp_size <= 0 || launch.block_threads <= 0) return {};
  const std::int64_t warps_possible = device.max_threads_per_multiprocessor / device.warp_size;
  const std::int64_t warps = (launch.block_threads + device.warp_size - 1) / device.warp_size;
  constexpr std::int64_t kNoLimit = std::numeric_limits<std::int32_t>::max();

  std::int64_t resident = warps_possible / warps;
  if (device.max_blocks_per_multiprocessor > 0) {
    resident = std::min<std::int64_t>(resident, device.max_blocks_per_multiprocessor);
  }
  if (launch.registers_per_thread > 0 && device.registers_per_multiprocessor > 0) {
    // Each of the four schedulers holds a quarter of the registers, and a warp stays with its scheduler.
    const std::int64_t per_warp = round_up(std::int64_t{launch.registers_per_thread} * device.warp_size, kRegisterUnit);
    const std::int64_t warps_per_scheduler = device.registers_per_multiprocessor / kWarpGroup / per_warp;
    const std::int64_t by_registers = warps_per_scheduler * kWarpGroup / round_up(warps, 1);
    resident = std::min(resident, by_registers);
  }
  const std::int64_t carveout =
      launch.shared_carveout_bytes > 0 ? launch.shared_carveout_bytes : device.shared_per_multiprocessor;
  const std::int64_t shared =
      round_up(launch.static_shared_bytes + launch.dynamic_shared_bytes + device.reserved_shared_per_block,
               shared_unit(device.major));
  const std::int64_t by_shared = shared > 0 && carveout > 0 ? carveout / shared : kNoLimit;
  resident = std::min(resident, by_shared);

  gpu::Occupancy result;
  result.blocks_per_multiprocessor = static_cast<std::int32_t>(resident);
  if (resident <= 0 || warps_possible <= 0) return result;
  result.occupancy_millionths = resident * warps * 1'000'000 / warps_possible;
  if (device.multiprocessors > 0) result.waves_thousandths = launch.blocks * 1000 / (resident * device.multiprocessors);
  return result;
}

}  // namespace leadline::nvidia
