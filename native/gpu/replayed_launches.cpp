#include "gpu/replayed_launches.h"

#include <utility>

#include "base/ids.h"
#include "gpu/measure.h"

namespace leadline::gpu {

bool ReplayedLaunches::expect(std::uint32_t call) {
  const std::lock_guard lock(mutex_);
  if (expected_.size() >= kMost) return false;
  expected_[call] = {};
  return true;
}

void ReplayedLaunches::forget(std::uint32_t call) noexcept {
  const std::lock_guard lock(mutex_);
  expected_.erase(call);
}

void ReplayedLaunches::move_if_whole(std::unordered_map<std::uint32_t, Kept>::iterator at) {
  if (!at->second.has_run || at->second.measures.empty()) return;
  whole_.push_back(std::move(at->second));
  expected_.erase(at);
}

void ReplayedLaunches::give(std::uint32_t call, std::vector<leadline_measure>&& measures) {
  const std::lock_guard lock(mutex_);
  const auto found = expected_.find(call);
  if (found == expected_.end()) return;
  found->second.measures = std::move(measures);
  move_if_whole(found);
}

// A kernel that is run several times may bring several records; they are one launch.
void ReplayedLaunches::ran(const KernelRun& run, const char* mangled) {
  const std::lock_guard lock(mutex_);
  const auto found = expected_.find(run.call);
  if (found == expected_.end() || found->second.has_run) return;
  found->second.run = run;
  found->second.name = mangled == nullptr ? "" : mangled;
  found->second.has_run = true;
  move_if_whole(found);
}

void ReplayedLaunches::settle(const Tell& tell) {
  std::vector<Kept> told;
  {
    const std::lock_guard lock(mutex_);
    told.swap(whole_);
  }
  for (const Kept& kept : told) tell(kept.run, kept.name, kept.measures);
}

void ReplayedLaunches::finish() {
  const std::lock_guard lock(mutex_);
  std::uint64_t lost = 0;
  for (const auto& [call, kept] : expected_) lost += kept.measures.empty() ? 0 : 1;
  expected_.clear();
  count_loss(LossKind::kCountersDropped, lost,
             "Counters of replayed kernels belong to launches whose records did not come.");
}

}  // namespace leadline::gpu
