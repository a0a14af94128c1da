// Calls patches with the vendor's signatures, thread by thread of a launch.
//
// A library of patches that has `leadline_fake_run` (testing/simt/fake_run.cpp) runs the threads itself, for functions
// in which those of a warp meet; without it they come one after the other.

#include <dlfcn.h>

#include "testing/sanitizer/fake_device.h"

namespace leadline::testing::sanitizer {
namespace {

constexpr std::uint32_t kSynchronizes = 2;  // a flag of a barrier: who comes waits

using Thread = void (*)(void* work, std::uint64_t number);
using Run = void (*)(Thread thread, void* work, std::uint32_t blocks, std::uint32_t threads);
using AtStep = void (*)(std::uint64_t step);
using Sync = void (*)();

using Block = std::int32_t (*)(void* user, std::uint64_t pc);
using Access = std::int32_t (*)(void* user, std::uint64_t pc, void* address, std::uint32_t bytes, std::uint32_t flags,
                                const void* value);
using CopyAsync = std::int32_t (*)(void* user, std::uint64_t pc, void* from, std::uint32_t to, std::uint32_t bytes,
                                   std::uint32_t zeros);
using Barrier = std::int32_t (*)(void* user, std::uint64_t pc, std::uint32_t index, std::uint32_t threads,
                                 std::uint32_t flags);

struct Work {
  const Patches* patches;
  const Kernel* kernel;
  std::uint64_t pc;
  void* user;
  AtStep at_step;  // null where threads do not meet
  Sync sync;
};

template <class Function>
Function patch_at(const Patches& patches, abi::Point point) {
  const auto found = patches.find(point);
  return found == patches.end() ? nullptr : reinterpret_cast<Function>(found->second);
}

void one_access(const Work& work, const DrawnAccess& access, std::uint64_t thread) {
  const std::uint64_t at = access.base + access.first + thread * access.stride;
  const std::uint64_t pc = work.pc + access.pc;
  if (access.point == abi::Point::kBarrier) {
    if (const auto patch = patch_at<Barrier>(*work.patches, access.point)) patch(work.user, pc, 0, 0, kSynchronizes);
    if (work.sync != nullptr) work.sync();
  } else if (access.point == abi::Point::kMemcpyAsync) {
    if (const auto patch = patch_at<CopyAsync>(*work.patches, access.point)) {
      patch(work.user, pc, reinterpret_cast<void*>(at), 0, access.bytes, 0);
    }
  } else if (const auto patch = patch_at<Access>(*work.patches, access.point)) {
    patch(work.user, pc, reinterpret_cast<void*>(at), access.bytes, access.flags,
          access.flags == 2 ? &access.value : nullptr);
  }
}

void run_thread(void* all, std::uint64_t thread) {
  const Work& work = *static_cast<const Work*>(all);
  std::uint64_t step = 0;
  const auto next = [&] {
    if (work.at_step != nullptr) work.at_step(step);
    ++step;
  };
  next();
  if (const auto patch = patch_at<Block>(*work.patches, abi::Point::kBlockEnter)) patch(work.user, work.pc);
  for (const DrawnAccess& access : work.kernel->accesses) {
    next();
    if (thread < access.count) one_access(work, access, thread);
  }
  if (work.kernel->dies) return;
  next();
  if (const auto patch = patch_at<Block>(*work.patches, abi::Point::kBlockExit)) patch(work.user, work.pc);
}

}  // namespace

void run_patched(const Patches& patches, void* library, const Kernel& kernel, const Dims& dims, std::uint64_t pc,
                 const void* user) {
  const auto run = reinterpret_cast<Run>(::dlsym(library, "leadline_fake_run"));
  const auto at_step = reinterpret_cast<AtStep>(::dlsym(library, "leadline_fake_at_step"));
  const auto sync = reinterpret_cast<Sync>(::dlsym(library, "leadline_fake_sync"));
  Work work{&patches, &kernel, pc, const_cast<void*>(user), at_step, sync};
  if (run != nullptr) return run(run_thread, &work, dims.grid, dims.block);
  for (std::uint64_t thread = 0; thread < std::uint64_t{dims.grid} * dims.block; ++thread) run_thread(&work, thread);
}

}  // namespace leadline::testing::sanitizer
