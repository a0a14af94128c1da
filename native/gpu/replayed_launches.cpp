#include "gpu/replayed_launches.h"

#include <iterator>
#include <utility>

namespace leadline::gpu {

bool ReplayedLaunches::expect(const KernelRun& run, const char* mangled) {
  const std::lock_guard lock(mutex_);
  if (expected_.size() >= kMost) return false;
  expected_[run.call] = {run, mangled == nullptr ? "" : mangled, {}, run.start_ns, false};
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

void ReplayedLaunches::give(std::uint32_t call, std::vector<leadline_measure>&& measures, std::int64_t duration_ns,
                            std::int64_t end_ns) {
  const std::lock_guard lock(mutex_);
  const auto found = expected_.find(call);
  if (found == expected_.end()) return;
  found->second.measures = std::move(measures);
  if (!found->second.has_run) {
    found->second.run.start_ns = end_ns - duration_ns;
    found->second.run.end_ns = end_ns;
  }
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

void ReplayedLaunches::settle(std::int64_t until_ns, const Tell& tell, const TellAlone& alone) {
  std::vector<Kept> told;
  {
    const std::lock_guard lock(mutex_);
    told.swap(whole_);
    for (auto at = expected_.begin(); at != expected_.end();) {
      const bool is_over = !at->second.measures.empty() && at->second.run.end_ns < until_ns;
      if (is_over) told.push_back(std::move(at->second));
      at = is_over ? expected_.erase(at) : std::next(at);
    }
  }
  for (const Kept& kept : told) {
    kept.has_run ? tell(kept.run, kept.name, kept.measures) : alone(kept.run, kept.began_ns, kept.name, kept.measures);
  }
}

}  // namespace leadline::gpu
