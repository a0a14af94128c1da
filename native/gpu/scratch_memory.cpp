#include "gpu/scratch_memory.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "gpu/measure.h"

namespace leadline::gpu {
namespace {

constexpr const char* kNoRoom = "There was no room for more changes of scratch memory that wait for their kernels.";

const std::string kNoMemory;  // in place of a name for which there was none

}  // namespace

// The earliest of those that ended later: clocks of host and device differ by less than a kernel that waited lasts.
void ScratchMemory::offer(Waiting& waiting, const Kept& kept) noexcept {
  if (waiting.change.kind != ScratchChange::Kind::kTaken || kept.name == nullptr) return;
  if (kept.queue != waiting.change.queue || kept.run.end_ns <= waiting.change.end_ns) return;
  if (waiting.kernel.name == nullptr || kept.run.start_ns < waiting.kernel.run.start_ns) waiting.kernel = kept;
}

void ScratchMemory::changed(const ScratchChange& change) noexcept {
  if (change.start_ns >= paused_.from_ns && change.start_ns < paused_.until_ns) return;
  ++counters_.changes;
  try {
    if (waiting_.size() < kMostChanges) {
      const auto at = std::upper_bound(
          waiting_.begin(), waiting_.end(), change.start_ns,
          [](std::int64_t start_ns, const Waiting& other) { return start_ns < other.change.start_ns; });
      Waiting& made = *waiting_.insert(at, {change, {}});
      for (const Kept& kept : runs_) offer(made, kept);
      return;
    }
  } catch (...) {
  }
  ++counters_.dropped;
  count_loss(LossKind::kGpuRecordsDropped, 1, kNoRoom);
}

void ScratchMemory::ran(const KernelRun& run, const char* mangled, std::uint64_t queue) noexcept {
  if (mangled == nullptr) return;
  Kept kept{run, &kNoMemory, queue};
  try {
    auto found = names_.find(std::string_view(mangled));
    if (found == names_.end()) found = names_.emplace(mangled).first;
    kept.name = &*found;
  } catch (...) {
    kept.name = &kNoMemory;  // what it asked for is told without a kernel, and not at the next one
  }
  runs_[next_run_++ % kMostRuns] = kept;
  for (Waiting& waiting : waiting_) offer(waiting, kept);
}

void ScratchMemory::tell_one(Waiting& waiting, const Tell& tell) {
  ScratchChange& change = waiting.change;
  Kept kernel = waiting.kernel;
  if (change.kind == ScratchChange::Kind::kTaken) {
    if (holders_.size() < kMostQueues || holders_.contains(change.queue)) {
      holders_[change.queue] = {kernel, change.bytes};
    }
  } else if (const auto found = holders_.find(change.queue); found != holders_.end()) {
    kernel = found->second.kernel;
    if (change.bytes == 0) change.bytes = found->second.bytes;
    holders_.erase(found);
  }
  const bool is_known = kernel.name != nullptr && kernel.name != &kNoMemory;
  if (!is_known) ++counters_.unattributed;
  tell(change, is_known ? &kernel.run : nullptr, is_known ? kernel.name : nullptr);
}

void ScratchMemory::settle(std::int64_t until_ns, const Tell& tell) noexcept {
  // In the order of time on each queue: what is given back after something that still waits, waits as well.
  for (std::size_t at = 0; at < waiting_.size();) {
    Waiting& waiting = waiting_[at];
    if (waiting.change.end_ns >= until_ns) break;
    const bool is_known =
        until_ns == INT64_MAX || waiting.change.kind != ScratchChange::Kind::kTaken || waiting.kernel.name != nullptr;
    const bool is_first =
        std::none_of(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(at),
                     [&](const Waiting& other) { return other.change.queue == waiting.change.queue; });
    if (!is_known || !is_first) {
      ++at;
      continue;
    }
    try {
      tell_one(waiting, tell);
    } catch (...) {
      ++counters_.dropped;
      count_loss(LossKind::kGpuRecordsDropped, 1, "There was no memory to record scratch memory.");
    }
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(at));
  }
}

void ScratchMemory::finish(const Tell& tell) noexcept { settle(INT64_MAX, tell); }

}  // namespace leadline::gpu
