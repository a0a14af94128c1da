#include "collector/collector.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <new>
#include <string>

#include "base/clock.h"

namespace leadline {
namespace {

EventKind event_kind(const Scope& scope, const leadline_gpu_api_event* api) noexcept {
  if (scope.kind == ScopeKind::kOperator) return EventKind::kOperator;
  if (scope.kind == ScopeKind::kRegion) return EventKind::kRegion;
  if (scope.kind == ScopeKind::kPhase) return EventKind::kPhase;
  if (api == nullptr) return EventKind::kApi;
  switch (api->kind) {
    case LEADLINE_GPU_SYNC:
      return EventKind::kSynchronize;
    case LEADLINE_GPU_STREAM_WAIT:
      return EventKind::kStreamWait;
    case LEADLINE_GPU_EVENT_RECORD:
      return EventKind::kEventRecord;
    case LEADLINE_GPU_ALLOC:
    case LEADLINE_GPU_FREE:
      return EventKind::kAllocate;
    case LEADLINE_GPU_GRAPH_LAUNCH:
      return EventKind::kGraphLaunch;
    default:
      return EventKind::kApi;
  }
}

}  // namespace

Collector::Collector(const CollectorOptions& options) : trees_(options.max_nodes) {}

Collector::~Collector() = default;

Lane* Collector::make_lane(ThreadState& thread) noexcept {
  auto* known = static_cast<Lane*>(thread.subscriber);
  // The thread before ended while nobody listened (pause).
  if (known != nullptr && known->alive.load(std::memory_order_relaxed)) retire(*known);
  try {
    ThreadTree& tree = tree_for(thread.tid);
    // Here and wherever the two are read: the time of the wall encloses the CPU's, in which a thread that waits for the
    // lock yields and runs on. So no thread runs for longer than it was there.
    const int64_t begun_ns = measured_now_ns();
    std::unique_ptr<Lane> made;
    if (known == nullptr) made = std::make_unique<Lane>(window_.create_lane(), thread.path.frames());
    Lane* const lane = known == nullptr ? made.get() : known;
    lane->begin(tree, number_);
    lane->life = thread.life;
    const std::lock_guard hold(lanes_busy_);
    int64_t never = 0;
    tree.stats().first_ns.compare_exchange_strong(never, begun_ns, std::memory_order_relaxed);
    if (paused_.load(std::memory_order_relaxed)) lane->stop_cpu(lane->cpu_at_begin_ns);
    if (made != nullptr) lanes_.push_back(std::move(made));
    lane->alive.store(true, std::memory_order_relaxed);
    thread.subscriber = lane;
  } catch (const std::bad_alloc&) {
    losses().count(LossKind::kInternalError, 1, "out of memory for a thread's tree");
    return nullptr;
  }
  return static_cast<Lane*>(thread.subscriber);
}

void Collector::bind(Lane& lane, uint64_t framework_thread) noexcept {
  bool no_memory = false;
  lane.forward = forward_threads_.begin(framework_thread, lane.tree->index(), &no_memory);
  lane.bound = !no_memory;
}

// The deepest level that has a node is where to go on from; usually the one just below the leaf.
NodeId Collector::resolve(Lane& lane, CallPath& path, size_t end) noexcept {
  StackOf<PathEntry>& entries = path.entries();
  size_t known = end;
  while (known > 0 && entries[known - 1].slot == 0) --known;
  NodeId node = known == 0 ? lane.tree->root() : NodeId{static_cast<uint32_t>(entries[known - 1].slot - 1)};
  for (; known < end; ++known) {
    node = lane.tree->child(node, lane.frame(entries[known].frame));
    entries[known].slot = uint64_t{raw(node)} + 1;
  }
  return node;
}

// Of the innermost scope, whatever Python frames have come since it began.
NodeId Collector::resolve_scope(Lane& lane, CallPath& path) noexcept {
  path.trim_to_scope();
  return resolve(lane, path);
}

NodeId Collector::place(Lane& lane, ThreadState& thread, bool in_event) noexcept {
  CallPath& path = thread.path;
  const Scope* scope = path.innermost();
  try {
    // Below an operator Python seldom runs; what it allocates there is the operator's. Who asks from inside an event
    // finds the path as that event has left it, and whoever hands it out still holds one of its scopes.
    if (!in_event && (scope == nullptr || scope->kind != ScopeKind::kOperator)) {
      path.sync();
      if (path.take_moved()) [[unlikely]] {
        on_scopes_moved(thread);
        path.departed().clear();
      }
    }
    return resolve(lane, path);
  } catch (...) {
    losses().count(LossKind::kInternalError, 1, "an event could not be handled, most likely because memory ran out");
    path.clear();  // it may be in the middle of a change
    thread.operators_open = 0;
    return lane.tree->root();
  }
}

// Books a stay of the innermost scope, whose call goes on in another one.
NodeId Collector::book_stay(Lane& lane, CallPath& path, int64_t duration_ns) noexcept {
  StackOf<Scope>& scopes = path.scopes();
  const Scope& scope = scopes.back();
  const uint64_t slot = path.entries()[scope.entry].slot;
  const NodeId node = slot != 0 ? NodeId{static_cast<uint32_t>(slot - 1)} : resolve_scope(lane, path);
  const int64_t own_ns = std::max<int64_t>(duration_ns - scope.child_ns, 0);
  lane.tree->add(node, MetricKind::kTime, kCpuDevice, kNoStream, own_ns);
  if (scopes.size() > 1) {
    Scope& above = scopes[scopes.size() - 2];
    above.child_ns += duration_ns;
    above.children += 2;  // as in book(): a stay is not the whole of a call
  }
  return node;
}

// Books the innermost scope, which ends.
NodeId Collector::book(Lane& lane, CallPath& path, int64_t duration_ns) noexcept {
  StackOf<Scope>& scopes = path.scopes();
  const Scope& scope = scopes.back();
  const uint64_t slot = path.entries()[scope.entry].slot;
  const NodeId node = slot != 0 ? NodeId{static_cast<uint32_t>(slot - 1)} : resolve_scope(lane, path);
  if (scope.earlier_ns != 0) [[unlikely]] {
    const int64_t own_ns = std::max<int64_t>(duration_ns - scope.child_ns, 0);
    lane.tree->add(node, MetricKind::kCallTime, kCpuDevice, kNoStream, scope.earlier_ns + duration_ns);
    // One that ends while it is suspended makes no stay where it ends.
    if (duration_ns != 0) lane.tree->add(node, MetricKind::kTime, kCpuDevice, kNoStream, own_ns);
  } else if (scope.children == 0) {
    lane.tree->add(node, kLeafTime, kCpuDevice, kNoStream, duration_ns);
  } else {
    const int64_t own_ns = std::max<int64_t>(duration_ns - scope.child_ns, 0);
    lane.tree->add(node, MetricKind::kCallTime, kCpuDevice, kNoStream, duration_ns);
    lane.tree->add(node, MetricKind::kTime, kCpuDevice, kNoStream, own_ns);
  }
  const PathFrameId frame = path.entries()[scope.entry].frame;
  if (scope.children == 1 && scope.last_child_frame == frame) {
    lane.tree->add(NodeId{scope.last_child_node}, MetricKind::kRepeatedCallTime, kCpuDevice, kNoStream,
                   scope.last_child_ns);
  }
  if (scopes.size() > 1) {
    Scope& above = scopes[scopes.size() - 2];
    above.child_ns += duration_ns;
    // A call of several stays is not the whole of a call around one of them.
    above.children += scope.earlier_ns == 0 ? 1 : 2;
    above.last_child_node = raw(node);
    above.last_child_ns = duration_ns;
    above.last_child_frame = frame;
  }
  return node;
}

void Collector::on_begin(const leadline_event& event, ThreadState& thread, Lane& lane) noexcept {
  if (event.domain == LEADLINE_DOMAIN_REGION && event.of.region.asked_at != 0) [[unlikely]]
    home_region(event.of.region.asked_at, thread.path, lane);
  settle_wrapper(lane, thread.path);
  const NodeId node = resolve(lane, thread.path);
  Scope& scope = thread.path.scopes().back();
  thread.published.enter(thread.path.scopes().size(), lane.token(node), PublishedPlaces::anchor_of(scope), scope.token);
  if (scope.kind != ScopeKind::kApi) on_region_begin(thread.path, lane);
  scope.begin_ns = now_ns();
}

void Collector::on_end(const leadline_event& event, ThreadState& thread, Lane& lane) noexcept {
  CallPath& path = thread.path;
  const Scope& scope = path.scopes().back();
  const int64_t duration_ns = std::max<int64_t>(event.time_ns - scope.begin_ns, 0);
  const leadline_region_event* region = event.domain == LEADLINE_DOMAIN_REGION ? &event.of.region : nullptr;
  const bool suspends = region != nullptr && (region->flags & LEADLINE_REGION_FLAG_SUSPENDS) != 0;
  if (region != nullptr && region->stays_ns != nullptr) *region->stays_ns = scope.earlier_ns + duration_ns;
  const NodeId node = suspends ? book_stay(lane, path, duration_ns) : book(lane, path, duration_ns);
  // Before the end of a step closes the window: what ends the step is a part of it.
  if (window_.is_open()) [[unlikely]] {
    record(scope, node, lane, duration_ns, scope.kind == ScopeKind::kApi ? &event.of.gpu_api : nullptr);
  }
  if (scope.kind != ScopeKind::kApi) {
    on_region_end(event.time_ns, duration_ns, node, thread, lane);
  } else if (event.of.gpu_api.kind == LEADLINE_GPU_SYNC) {
    lane.step_values[StepColumn::kDeviceWait] += duration_ns;
  }
}

void Collector::record(const Scope& scope, NodeId node, Lane& lane, int64_t duration_ns,
                       const leadline_gpu_api_event* api) noexcept {
  TraceEvent row;
  row.start_ns = scope.begin_ns - scope.paused_ns;  // one event that a pause lies in
  row.duration_ns = duration_ns + scope.paused_ns;
  row.kind = event_kind(scope, api);
  row.tree = lane.tree->index();
  row.node = node;
  row.thread = lane.tree->index();
  row.sequence = scope.sequence;
  row.step = static_cast<int32_t>(steps_.load(std::memory_order_relaxed));
  if (scope.backward) row.forward_thread = forward_threads_.tree_of(scope.forward_thread);
  if (api != nullptr) {
    row.device = devices_.row(device_type(api->device_type), api->device);
    row.stream = static_cast<int32_t>(api->stream);
    row.correlation = api->correlation;
    row.bytes = api->bytes;
    row.awaits = api->awaits;
    row.awaits_correlation = api->awaits_correlation;
  }
  lane.events.add(row);
}

void Collector::on_event(const leadline_event& event, ThreadState& thread) noexcept {
  Lane* own = lane(thread);
  if (own == nullptr) {
    constexpr uint32_t kNests = LEADLINE_DOMAIN_REGION | LEADLINE_DOMAIN_GPU_API | LEADLINE_DOMAIN_COMPILE;
    if (event.phase == LEADLINE_BEGIN && (event.domain & kNests) != 0) thread.path.scopes().back().unheard = true;
    return;
  }
  switch (event.domain) {
    case LEADLINE_DOMAIN_GPU_ACTIVITY:
      return on_activity(event.of.gpu_activity, *own);
    case LEADLINE_DOMAIN_GPU_MODULE:
      return;
    default:
      break;
  }
  if (event.phase == LEADLINE_BEGIN) {
    on_begin(event, thread, *own);
  } else if (event.phase == LEADLINE_END) {
    on_end(event, thread, *own);
  } else if (event.domain == LEADLINE_DOMAIN_REGION && event.of.region.kind == LEADLINE_REGION_STEP) {
    steps_given_.store(true, std::memory_order_relaxed);
    end_step(*own, event.of.region.step, event.time_ns);
  }
}

leadline_context Collector::context(ThreadState& thread, bool in_event) noexcept {
  Lane* own = lane(thread);
  if (own == nullptr) return 0;
  return own->token(place(*own, thread, in_event));
}

}  // namespace leadline
