// What counters said of single launches, to the kernels that these launched. The part that counts and the part that
// folds records are two threads, and either may be first.
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

  // The part that counts. `call`: the program's API call; false where there is no room for more.
  bool expect(std::uint32_t call);
  void give(std::uint32_t call, std::vector<leadline_measure>&& measures);
  // Nothing is known of it.
  void forget(std::uint32_t call) noexcept;

  // The part that folds.
  void ran(const KernelRun& run, const char* mangled);
  using Tell = std::function<void(const KernelRun& run, const std::string& mangled,
                                  const std::vector<leadline_measure>& measures)>;
  void settle(const Tell& tell);
  // No more records come: counts what belongs to no kernel.
  void finish();

 private:
  struct Kept {
    KernelRun run;
    std::string name;
    std::vector<leadline_measure> measures;
    bool has_run = false;
  };
  void move_if_whole(std::unordered_map<std::uint32_t, Kept>::iterator at);

  std::mutex mutex_;
  std::unordered_map<std::uint32_t, Kept> expected_;
  std::vector<Kept> whole_;
};

}  // namespace leadline::gpu
