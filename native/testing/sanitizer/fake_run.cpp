// Calls patches with the vendor's signatures, thread by thread of a launch.
//
// A library of patches that has `leadline_fake_run_warp` is given whole warps, for the functions in which threads of a
// warp meet; one without is called thread by thread.

#include <dlfcn.h>

#include <algorithm>

#include "testing/sanitizer/fake_device.h"

namespace leadline::testing::sanitizer {
namespace {

constexpr std::uint32_t kWarp = 32;

using Lane = void (*)(void* work, std::uint32_t lane);
using RunWarp = void (*)(Lane lane, void* work, std::uint32_t lanes, std::uint32_t first_thread, std::uint32_t block,
                         std::uint32_t blocks, std::uint32_t threads);

using Block = std::int32_t (*)(void* user, std::uint64_t pc);
using Access = std::int32_t (*)(void* user, std::uint64_t pc, void* address, std::uint32_t bytes, std::uint32_t flags,
                                const void* value);
using CopyAsync = std::int32_t (*)(void* user, std::uint64_t pc, void* from, std::uint32_t to, std::uint32_t bytes,
                                   std::uint32_t zeros);
using Barrier = std::int32_t (*)(void* user, std::uint64_t pc, std::uint32_t index, std::uint32_t threads,
                                 std::uint32_t flags);

struct Warp {
  const Patches* patches;
  const Kernel* kernel;
  std::uint64_t pc;
  void* user;
  std::uint64_t first_thread;  // in the grid
};

template <class Function>
Function patch_at(const Patches& patches, abi::Point point) {
  const auto found = patches.find(point);
  return found == patches.end() ? nullptr : reinterpret_cast<Function>(found->second);
}

void one_access(const Warp& warp, const DrawnAccess& access, std::uint64_t thread) {
  const std::uint64_t at = access.base + access.first + thread * access.stride;
  const std::uint64_t pc = warp.pc + access.pc;
  if (access.point == abi::Point::kBarrier) {
    if (const auto patch = patch_at<Barrier>(*warp.patches, access.point)) patch(warp.user, pc, 0, 0, 0);
  } else if (access.point == abi::Point::kMemcpyAsync) {
    if (const auto patch = patch_at<CopyAsync>(*warp.patches, access.point)) {
      patch(warp.user, pc, reinterpret_cast<void*>(at), 0, access.bytes, 0);
    }
  } else if (const auto patch = patch_at<Access>(*warp.patches, access.point)) {
    patch(warp.user, pc, reinterpret_cast<void*>(at), access.bytes, access.flags,
          access.flags == 2 ? &access.value : nullptr);
  }
}

void run_lane(void* work, std::uint32_t lane) {
  const Warp& warp = *static_cast<const Warp*>(work);
  const std::uint64_t thread = warp.first_thread + lane;
  if (const auto patch = patch_at<Block>(*warp.patches, abi::Point::kBlockEnter)) patch(warp.user, warp.pc);
  for (const DrawnAccess& access : warp.kernel->accesses) {
    if (thread < access.count) one_access(warp, access, thread);
  }
  if (warp.kernel->dies) return;
  if (const auto patch = patch_at<Block>(*warp.patches, abi::Point::kBlockExit)) patch(warp.user, warp.pc);
}

}  // namespace

void run_patched(const Patches& patches, void* library, const Kernel& kernel, const Dims& dims, std::uint64_t pc,
                 const void* user) {
  const auto run_warp = reinterpret_cast<RunWarp>(::dlsym(library, "leadline_fake_run_warp"));
  for (std::uint32_t block = 0; block < dims.grid; ++block) {
    for (std::uint32_t first = 0; first < dims.block; first += kWarp) {
      Warp warp{&patches, &kernel, pc, const_cast<void*>(user), std::uint64_t{block} * dims.block + first};
      const std::uint32_t lanes = std::min(kWarp, dims.block - first);
      if (run_warp != nullptr) {
        run_warp(run_lane, &warp, lanes, first, block, dims.grid, dims.block);
      } else {
        for (std::uint32_t lane = 0; lane < lanes; ++lane) run_lane(&warp, lane);
      }
    }
  }
}

}  // namespace leadline::testing::sanitizer
