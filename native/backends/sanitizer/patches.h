// Which functions of the device's text (native/backends/device/patches.cu) are called from where, by what is wanted.
#pragma once

#include <vector>

#include "backends/device/tracker.h"
#include "backends/sanitizer/known_code.h"

namespace leadline::sanitizer {

// `without_copies`: as the paper has it, without what copies to shared memory read by themselves.
inline std::vector<Patch> patches_for(std::uint32_t want, bool without_copies = false) {
  std::vector<Patch> patches{{abi::Point::kBlockExit, "leadline_exit", false},
                             {abi::Point::kGlobal, "leadline_global", false}};
  if (!without_copies) {
    patches.push_back({abi::Point::kMemcpyAsync, "leadline_memcpy_async", false});
    patches.push_back({abi::Point::kBulkGlobalToShared, "leadline_bulk_load", false});
    patches.push_back({abi::Point::kBulkSharedToGlobal, "leadline_bulk_store", false});
    patches.push_back({abi::Point::kBulkReduceToGlobal, "leadline_bulk_reduce", false});
    patches.push_back({abi::Point::kTmaLoad, "leadline_tma_load", true});
  }
  if ((want & device::kWantConflicts) != 0) patches.push_back({abi::Point::kShared, "leadline_shared", false});
  if ((want & device::kWantBarriers) != 0) patches.push_back({abi::Point::kBarrier, "leadline_barrier", false});
  return patches;
}

}  // namespace leadline::sanitizer
