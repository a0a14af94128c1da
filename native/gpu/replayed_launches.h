// What counters said of single launches, to the kernels that these launched. The part that counts and the part that
// folds records are two threads, and either may be first. A vendor may give no record of what it replays (CUPTI 13 on
// an H100 gives none): then the launch itself says where it was, and the counters how long the kernel took.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "gpu/instruction_samples.h"

namespace leadline::gpu {

class ReplayedLaunches {
 public:
  static constexpr std::size_t kMost = 1u << 14;

  // The part that counts. `run`: what is known at the launch, its begin as `start_ns`; false where there is no room for
  // more. `duration_ns`: of the kernel, run once; `end_ns`: when the launch had ended with all its passes.
  bool expect(const KernelRun& run, const char* mangled);
  void give(std::uint32_t call, std::vector<leadline_measure>&& measures, std::int64_t duration_ns,
            std::int64_t end_ns);
  // Nothing is known of it.
  void forget(std::uint32_t call) noexcept;

  // The part that folds.
  void ran(const KernelRun& run, const char* mangled);
  using Tell = std::function<void(const KernelRun& run, const std::string& mangled,
                                  const std::vector<leadline_measure>& measures)>;
  // `alone`: kernels whose record has not come, of launches that ended before `until_ns`. `run` is then that of the
  // last pass, and the device was busy with others since `began_ns`.
  using TellAlone = std::function<void(const KernelRun& run, std::int64_t began_ns, const std::string& mangled,
                                       const std::vector<leadline_measure>& measures)>;
  void settle(std::int64_t until_ns, const Tell& tell, const TellAlone& alone);

 private:
  struct Kept {
    KernelRun run;
    std::string name;
    std::vector<leadline_measure> measures;
    std::int64_t began_ns = 0;
    bool has_run = false;
  };
  void move_if_whole(std::unordered_map<std::uint32_t, Kept>::iterator at);

  std::mutex mutex_;
  std::unordered_map<std::uint32_t, Kept> expected_;
  std::vector<Kept> whole_;
};

}  // namespace leadline::gpu
