// The devices that the SDK knows, in the program's own numbering.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "gpu/device.h"
#include "providers/amd/rocprofiler_abi.h"

namespace leadline::amd {

// From a device to another one that the program sees.
struct GpuLink {
  std::uint32_t node = 0;    // of the driver's topology
  std::int32_t device = -1;  // the program's number of it
  std::int32_t type = 0;     // sdk::kLinkXgmi and others
  std::uint32_t weight = 0;  // the driver's; grows with the way
  std::uint32_t mb_per_s = 0;
};

struct GpuAgent {
  gpu::DeviceInfo info;
  std::uint64_t id = 0;
  std::string architecture;  // "gfx942"
  std::int32_t simds_per_compute_unit = 0;
  std::int32_t max_waves_per_simd = 0;
  std::int32_t xccs = 0;
  std::int32_t lds_kib = 0;
  std::uint64_t hive = 0;  // devices of one are joined by xGMI
  std::uint32_t node = 0;  // of the driver's topology
  std::string pci;         // "0000:c1:00.0"
  std::vector<GpuLink> links;
  // Which of so many devices that share one card (partition modes of MI300); 0 of 1 where it is not divided.
  std::int32_t part = 0;
  std::int32_t parts = 1;
};

// What the environment says of the devices that HIP shows, see "GPU isolation techniques" in ROCm's documentation.
struct Visibility {
  std::optional<std::string> rocr;  // ROCR_VISIBLE_DEVICES: of all devices
  std::optional<std::string> hip;   // HIP_VISIBLE_DEVICES or CUDA_VISIBLE_DEVICES: of those
  static Visibility of_environment();
};

class Agents {
 public:
  // As rocprofiler_query_available_agents() hands them over; structures may be shorter than ours.
  void load(const void* const* agents, std::size_t count, const Visibility& visibility);

  // Devices that are in the program's numbering already; their ids are theirs in records.
  void take(std::vector<GpuAgent> gpus);

  // The program's number of a device; -1 for the CPU and what is not known.
  std::int32_t device(std::uint64_t agent) const noexcept {
    const auto found = devices_.find(agent);
    return found == devices_.end() ? -1 : found->second;
  }
  const std::vector<GpuAgent>& gpus() const noexcept { return gpus_; }
  // What joins two of the program's devices, a literal; null where the driver names no link.
  const char* link(std::int32_t from, std::int32_t to) const noexcept;
  // What the program's lists of devices contradict each other in, one sentence; empty where they do not.
  const std::string& contradiction() const noexcept { return contradiction_; }

 private:
  std::vector<GpuAgent> gpus_;
  std::unordered_map<std::uint64_t, std::int32_t> devices_;
  std::string contradiction_;
};

// JSON object for the devices table.
std::string device_detail_json(const GpuAgent& agent);

}  // namespace leadline::amd
