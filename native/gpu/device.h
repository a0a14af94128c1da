// A device as the fold, the table of devices and recordings need it, and how full a launch can make it.
#pragma once

#include <cstdint>
#include <string>

namespace leadline::gpu {

// Zero, or empty, where the driver did not tell.
struct DeviceInfo {
  std::int32_t index = 0;  // the program's own numbering
  std::string name;
  std::string uuid;  // in the vendor's spelling
  std::int64_t memory_bytes = 0;
  std::int32_t major = 0;  // of the architecture
  std::int32_t minor = 0;
  std::int32_t stepping = 0;
  std::int32_t multiprocessors = 0;
  std::int32_t warp_size = 32;
  std::int32_t max_threads_per_multiprocessor = 0;
  std::int32_t max_blocks_per_multiprocessor = 0;
  std::int32_t registers_per_multiprocessor = 0;
  std::int32_t shared_per_multiprocessor = 0;
  std::int32_t reserved_shared_per_block = 0;
  bool partition = false;  // a slice of a device that is shared with others
};

struct LaunchShape {
  std::int64_t blocks = 0;  // in the grid
  std::int32_t block_threads = 0;
  std::int32_t registers_per_thread = 0;
  std::int64_t static_shared_bytes = 0;    // per block
  std::int64_t dynamic_shared_bytes = 0;   // per block
  std::int64_t shared_carveout_bytes = 0;  // shared memory of a multiprocessor during the kernel; 0: the device's limit
  std::int32_t accumulation_registers = 0;  // per thread, beside the others

  friend bool operator==(const LaunchShape&, const LaunchShape&) = default;
};

struct Occupancy {
  std::int32_t blocks_per_multiprocessor = 0;  // 0: the device's limits are not known
  std::int64_t occupancy_millionths = 0;       // warps resident / warps possible
  std::int64_t waves_thousandths = 0;          // blocks / (blocks resident on the whole device)
};

// The hardware's rules of allocation are the vendor's.
using OccupancyRule = Occupancy (*)(const LaunchShape& launch, const DeviceInfo& device);

// What the shared parts must know of a vendor.
struct Vendor {
  const char* graph = "graph";        // what users call one that is replayed as a whole
  OccupancyRule occupancy = nullptr;  // null: launches tell nothing of grids, registers and shared memory
  // Launches tell of scalar and accumulation registers and of scratch memory.
  bool has_scalar_registers = false;
  std::int32_t device_type = 0;  // of its devices, as in leadline_memory_event; 0 is CUDA here
};

}  // namespace leadline::gpu
