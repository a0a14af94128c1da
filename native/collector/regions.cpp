// What regions and phases tell beside their wall time: how long their thread ran, data loading, the end of a step.
#include <algorithm>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/optimizer_turns.h"
#include "collector/collector.h"

namespace leadline {
namespace {

constexpr std::string_view kOnAnotherThread = "on another thread";

bool is_region(const Scope& scope) noexcept {
  return scope.kind == ScopeKind::kRegion || scope.kind == ScopeKind::kPhase;
}

// What its provider says of a phase.
bool is(const Scope& scope, leadline_region_flag what) noexcept { return (scope.flags & what) != 0; }

}  // namespace

// The thread's CPU time since the last border goes to the scope that was the innermost one since then: whatever way
// regions overlap, every nanosecond is counted once.
void Collector::run_to_border(Lane& lane, Scope* innermost) noexcept {
  const int64_t cpu_ns = lane.cpu_ns();
  const int64_t ran_ns = cpu_ns - std::exchange(lane.border_cpu_ns, cpu_ns);
  if (innermost != nullptr) innermost->running_ns += ran_ns;
}

// Work that another thread asked for hangs where it was asked for, unless something of its own thread encloses it.
void Collector::home_region(leadline_context asked_at, CallPath& path, Lane& lane) noexcept {
  if (path.entries().size() != 1 || !is_place(asked_at)) return;
  const ThreadIndex tree = tree_of(asked_at);
  if (tree == lane.tree->index()) return;
  FrameId phase = kNoFrame;
  try {
    std::string thread = "{\"thread\": \"";
    for (const char c : lane.tree->name()) thread += c == '"' || c == '\\' ? '?' : c;
    phase = lane.plain(FrameKind::kPhase, kOnAnotherThread, {}, 0, thread + "\"}");
  } catch (const std::bad_alloc&) {
    losses().count(LossKind::kInternalError, 1, "no memory for the place of a helper thread's work");
    return;
  }
  const NodeId parent = lane.tree->child(lane.graft(tree, node_of(asked_at)), phase);
  PathEntry& entry = path.entries().back();
  entry.slot = uint64_t{raw(lane.tree->child(parent, lane.frame(entry.frame)))} + 1;
}

void Collector::on_region_begin(CallPath& path, Lane& lane) noexcept {
  StackOf<Scope>& scopes = path.scopes();
  const auto outer = std::find_if(scopes.rbegin() + 1, scopes.rend(), is_region);
  run_to_border(lane, outer == scopes.rend() ? nullptr : &*outer);
  scopes.back().mark = lane.operator_ns;
  scopes.back().parts_mark = lane.phases_ns;
}

void Collector::book_data_loading(const Scope& scope, int64_t duration_ns, ThreadState& thread, Lane& lane) noexcept {
  CallPath& path = thread.path;
  const StackOf<Scope>& scopes = path.scopes();
  const auto loading = [&](const Scope& outer) {
    return &outer != &scope && !outer.returned && is(outer, LEADLINE_REGION_FLAG_DATA_WAIT);
  };
  if (thread.operators_open != 0 || std::any_of(scopes.begin(), scopes.end(), loading)) return;
  const int64_t waited_ns = duration_ns - (lane.operator_ns - scope.mark);
  lane.tree->stats().data_ns.fetch_add(waited_ns, std::memory_order_relaxed);
}

// What scopes took in stays that are over is booked where they were, a value for each stay. The call is one: it counts
// and has its length where it ends.
void Collector::on_scopes_moved(ThreadState& thread) noexcept {
  Lane* own = lane(thread);
  if (own == nullptr) return;
  CallPath& path = thread.path;
  const auto node_of = [](const CallPath::Departed& stay) { return NodeId{static_cast<uint32_t>(stay.slot - 1)}; };
  // Who was the innermost until now: of those that left, or else of those that stand.
  const int64_t cpu_ns = own->cpu_ns();
  const int64_t ran_ns = cpu_ns - std::exchange(own->border_cpu_ns, cpu_ns);
  const auto left = std::find_if(path.departed().begin(), path.departed().end(),
                                 [](const CallPath::Departed& stay) { return is_region(stay.scope); });
  StackOf<Scope>& scopes = path.scopes();
  const auto stood = std::find_if(scopes.rbegin(), scopes.rend(),
                                  [](const Scope& scope) { return is_region(scope) && !scope.returned; });
  if (left != path.departed().end()) {
    left->scope.running_ns += ran_ns;
  } else if (stood != scopes.rend()) {
    stood->running_ns += ran_ns;
  }
  for (const CallPath::Departed& stay : path.departed()) {
    const NodeId node = node_of(stay);
    const int64_t own_ns = std::max<int64_t>(stay.elapsed_ns - stay.scope.child_ns, 0);
    own->tree->add(node, MetricKind::kTime, kCpuDevice, kNoStream, own_ns);
    if (is_region(stay.scope))
      own->tree->add(node, MetricKind::kRunningTime, kCpuDevice, kNoStream, stay.scope.running_ns);
    if (is(stay.scope, LEADLINE_REGION_FLAG_DATA_WAIT)) book_data_loading(stay.scope, stay.elapsed_ns, thread, *own);
    if (window_.is_open()) record(stay.scope, node, *own, stay.elapsed_ns, nullptr);
  }
  for (Scope& scope : scopes) {
    if (scope.returned) {
      scope.mark = own->operator_ns;
      scope.parts_mark = own->phases_ns;
    }
    scope.returned = false;
  }
  resolve(*own, path);
}

void Collector::on_region_end(int64_t time_ns, int64_t duration_ns, NodeId node, ThreadState& thread,
                              Lane& lane) noexcept {
  CallPath& path = thread.path;
  StackOf<Scope>& scopes = path.scopes();
  Scope& scope = scopes.back();
  run_to_border(lane, &scope);
  lane.phase_ended(scope, path.entries()[scope.entry].frame, duration_ns);
  if (duration_ns != 0 || scope.earlier_ns == 0) {
    lane.tree->add(node, MetricKind::kRunningTime, kCpuDevice, kNoStream, scope.running_ns);
  }
  if (is(scope, LEADLINE_REGION_FLAG_DATA_WAIT)) {
    book_data_loading(scope, duration_ns, thread, lane);
  }
  if (is(scope, LEADLINE_REGION_FLAG_ENDS_STEP) && !steps_given_.load(std::memory_order_relaxed)) {
    if (optimizer_follows) {
      optimizer_follows = false;
    } else if (ends_step(lane.token(node))) {
      end_step(lane, -1, time_ns);
    }
  }
}

}  // namespace leadline
