// What regions and phases tell beside their wall time: how long their thread ran, data loading, the end of a step.
#include <algorithm>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "collector/collector.h"

namespace leadline {
namespace {

constexpr std::string_view kOptimizer = "optimizer";
constexpr std::string_view kDataLoading = "data loading";

bool is_region(const Scope& scope) noexcept {
  return scope.kind == ScopeKind::kRegion || scope.kind == ScopeKind::kPhase;
}

bool is_phase(const Scope& scope, std::string_view name, CallPath& path) noexcept {
  return scope.kind == ScopeKind::kPhase && path.frames()[path.entries()[scope.entry].frame].name == name;
}

}  // namespace

// The thread's CPU time since the last border goes to the scope that was the innermost one since then: whatever way
// regions overlap, every nanosecond is counted once.
void Collector::run_to_border(Lane& lane, Scope* innermost) noexcept {
  const int64_t cpu_ns = thread_cpu_ns();
  const int64_t ran_ns = cpu_ns - std::exchange(lane.border_cpu_ns, cpu_ns);
  if (innermost != nullptr) innermost->running_ns += ran_ns;
}

void Collector::on_region_begin(CallPath& path, Lane& lane) noexcept {
  std::vector<Scope>& scopes = path.scopes();
  const auto outer = std::find_if(scopes.rbegin() + 1, scopes.rend(), is_region);
  run_to_border(lane, outer == scopes.rend() ? nullptr : &*outer);
  scopes.back().mark = lane.operator_ns;
}

void Collector::on_region_end(int64_t time_ns, int64_t duration_ns, NodeId node, ThreadState& thread,
                              Lane& lane) noexcept {
  CallPath& path = thread.path;
  std::vector<Scope>& scopes = path.scopes();
  Scope& scope = scopes.back();
  run_to_border(lane, &scope);
  lane.tree->add(node, MetricKind::kRunningTime, kCpuDevice, kNoStream, scope.running_ns);
  if (is_phase(scope, kDataLoading, path)) {
    const auto loading = [&](const Scope& outer) { return is_phase(outer, kDataLoading, path); };
    const bool outermost = std::none_of(scopes.begin(), scopes.end() - 1, loading);
    if (!outermost || thread.operators_open != 0) return;
    const int64_t waited_ns = duration_ns - (lane.operator_ns - scope.mark);
    lane.tree->stats().data_ns.fetch_add(waited_ns, std::memory_order_relaxed);
  } else if (is_phase(scope, kOptimizer, path) && !steps_given_.load(std::memory_order_relaxed)) {
    uint64_t expected = 0;
    const uint64_t here = lane.token(node);
    if (step_place_.compare_exchange_strong(expected, here, std::memory_order_relaxed) || expected == here) {
      end_step(lane, -1, time_ns);
    }
  }
}

}  // namespace leadline
