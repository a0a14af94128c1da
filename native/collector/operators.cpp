// Operators, of which there are more than of anything else: where they hang, and what they took.
//
// Programs repeat themselves, so the usual operator is found by its name among the places below the place it stands on,
// and no table is asked. begin_operator() and end_operator() know that way only; for everything else there are
// on_operator_begin() and on_operator_end().
#include <algorithm>

#include "base/clock.h"
#include "base/hash.h"
#include "collector/collector.h"

namespace leadline {
namespace {

constexpr MetricKey kLeaf{kLeafTime};
constexpr MetricKey kCall{MetricKind::kCallTime};
constexpr MetricKey kOwn{MetricKind::kTime};
constexpr int kAddressBits = 48;  // of the addresses that programs get

ThreadTree::Place* place_of(const Scope& scope) noexcept { return static_cast<ThreadTree::Place*>(scope.place); }

}  // namespace

NodeId Collector::backward_parent(Lane& lane, const leadline_operator_event& event) noexcept {
  if (event.sequence < 0) return kNoNode;
  const ForwardThreads::Forward forward = forward_threads_.find(event.forward_thread, event.sequence);
  if (forward.node == kNoNode) return kNoNode;
  return lane.tree->child(lane.graft(forward.tree, forward.node), lane.backward_phase);
}

// A backward operator goes below its forward operator; autograd's wrapper around it, begun just before, goes there with
// it.
NodeId Collector::home_backward(const leadline_operator_event& op, CallPath& path, Lane& lane) noexcept {
  StackOf<Scope>& scopes = path.scopes();
  Scope& scope = scopes.back();
  Scope* outer = scopes.size() > 1 ? &scopes[scopes.size() - 2] : nullptr;
  const bool twin = outer != nullptr && (outer->backward || outer->deferred) && outer->sequence == op.sequence;
  if (twin && op.sequence >= 0) return kNoNode;  // inside its own twin, or a wrapper that has its place
  NodeId parent = backward_parent(lane, op);
  const bool wrapped = outer != nullptr && outer->deferred && path.entries()[outer->entry].slot == 0;
  if (parent == kNoNode) {
    if (op.sequence >= 0) losses().count(LossKind::kBackwardWithoutForward, 1);
    if (wrapped) place_wrapper(lane, path, *outer);
    return kNoNode;
  }
  if (wrapped) parent = settle(lane, path.entries()[outer->entry], parent);
  return settle(lane, path.entries()[scope.entry], parent);
}

NodeId Collector::settle(Lane& lane, PathEntry& entry, NodeId parent) noexcept {
  const NodeId node = lane.tree->child(parent, lane.frame(entry.frame));
  entry.slot = uint64_t{raw(node)} + 1;
  return node;
}

// Something begins inside a wrapper before the backward operator that it is waiting for, most likely a hook: it belongs
// where that operator will be.
void Collector::settle_wrapper(Lane& lane, CallPath& path) noexcept {
  StackOf<Scope>& scopes = path.scopes();
  if (scopes.size() < 2) return;
  Scope& outer = scopes[scopes.size() - 2];
  PathEntry& entry = path.entries()[outer.entry];
  const leadline_wrapped ask = wrapped_.load(std::memory_order_relaxed);
  if (!outer.deferred || entry.slot != 0 || ask == nullptr) return;
  leadline_operator_event coming{};
  const NodeId parent = ask(&coming.sequence, &coming.forward_thread) == 0 ? kNoNode : backward_parent(lane, coming);
  if (parent == kNoNode) {
    place_wrapper(lane, path, outer);
    return;
  }
  settle(lane, entry, parent);
  outer.sequence = coming.sequence;
}

void Collector::on_operator_begin(const leadline_operator_event& op, ThreadState& thread) noexcept {
  CallPath& path = thread.path;
  Scope& scope = path.scopes().back();
  Lane* own = lane(thread);
  if (own == nullptr) {
    scope.unheard = true;  // nobody knows when it began
    return;
  }
  NodeId node = kNoNode;
  if (op.backward != 0) {
    node = home_backward(op, path, *own);
    scope.backward = true;
  } else if (op.wrapped != nullptr) {
    scope.deferred = true;
    wrapped_.store(op.wrapped, std::memory_order_relaxed);
  } else {
    settle_wrapper(*own, path);
  }
  if (node == kNoNode && !scope.deferred) node = resolve_operator(*own, path, scope);
  if (node != kNoNode) own->tree->prefetch(node);
  thread.published.enter(path.scopes().size(), node == kNoNode ? thread.published.innermost() : own->token(node),
                         PublishedPlaces::anchor_of(scope), scope.token);
  if (op.sequence >= 0 && op.backward == 0) {
    if (!own->bound) [[unlikely]]
      bind(*own, op.thread);
    if (own->forward != nullptr) own->forward->ring.store(op.sequence, node);
    own->follow_autograd(op.sequence, node);
  }
  if (thread.operators_open == 1) own->outermost_begins();
  scope.begin_ns = now_ns();
}

void Collector::on_operator_end(int64_t time_ns, ThreadState& thread) noexcept {
  Lane* own = lane(thread);
  if (own == nullptr) return;
  CallPath& path = thread.path;
  const Scope& scope = path.scopes().back();
  const int64_t duration_ns = std::max<int64_t>(time_ns - scope.begin_ns, 0);
  const NodeId node = book(*own, path, duration_ns);
  if (thread.operators_open == 0) {
    own->outermost_ended(scope.begin_ns, duration_ns, scope.earlier_ns);
    if (scope.backward || scope.deferred) backward_ns_.fetch_add(duration_ns, std::memory_order_relaxed);
  }
  if (window_.is_open()) [[unlikely]]
    record(scope, node, *own, duration_ns, nullptr);
}

// What the innermost level of the path stands at, where it is known.
[[gnu::hot]] ThreadTree::Place* Collector::innermost_place(Lane& lane, CallPath& path) noexcept {
  const StackOf<PathEntry>& entries = path.entries();
  if (entries.empty()) return lane.tree->place(lane.tree->root());
  const Scope* scope = path.innermost();
  if (scope != nullptr && scope->place != nullptr && scope->entry + 1 == entries.size()) return place_of(*scope);
  const uint64_t slot = entries.back().slot;
  return slot == 0 ? nullptr : lane.tree->place(NodeId{static_cast<uint32_t>(slot - 1)});
}

// The place of an operator with a stable name and inputs below another place; nullptr when the tree has no room for it.
[[gnu::hot]] ThreadTree::Place* Collector::operator_place(Lane& lane, ThreadTree::Place& above, PathFrames& frames,
                                                          const leadline_operator_event& op) {
  uintptr_t name = reinterpret_cast<uintptr_t>(op.name) ^ uintptr_t { op.name_generation } << kAddressBits;
  if (op.inputs != nullptr) name = hash_mix(name, reinterpret_cast<uintptr_t>(op.inputs));
  if (ThreadTree::Place* const known = above.named_child(name); known != nullptr) [[likely]]
    return known;
  const PathFrameId frame = op.inputs == nullptr ? frames.operator_named(op.name, op.name_generation)
                                                 : frames.operator_with(op.name, op.name_generation, op.inputs);
  const NodeId node = lane.tree->child(above.id(), lane.frame(frame));
  if (node == above.id()) return nullptr;
  ThreadTree::Place* const place = lane.tree->place(node);
  place->name(name, static_cast<uint32_t>(frame));
  return place;
}

// Autograd's, and those whose names or inputs may mean another text the next time: what the monitor does for all who
// listen, for one.
bool Collector::begin_other_operator(const leadline_operator_event& op, const void* token, ThreadState& thread) {
  CallPath& path = thread.path;
  path.sync();
  if (path.take_moved()) [[unlikely]] {
    on_scopes_moved(thread);
    path.departed().clear();
  }
  const PathFrameId frame = path.frames().operator_named(op.name, stable_name(op), op.inputs);
  Scope& scope = path.push(token, ScopeKind::kOperator, frame);
  scope.sequence = op.sequence;
  scope.forward_thread = op.forward_thread;
  ++thread.operators_open;
  on_operator_begin(op, thread);
  return true;
}

bool Collector::begin_operator(const leadline_operator_event& op, const void* token, ThreadState& thread) {
  const bool is_stable = op.stable_name != 0 && (op.inputs == nullptr || op.stable_inputs != 0);
  if (!is_stable || op.backward != 0 || op.wrapped != nullptr) return begin_other_operator(op, token, thread);
  Lane* const own = lane(thread);
  if (own == nullptr) return false;
  CallPath& path = thread.path;
  path.sync();
  if (path.take_moved()) [[unlikely]] {
    on_scopes_moved(thread);
    path.departed().clear();
  }
  const StackOf<PathEntry>& entries = path.entries();
  if (!entries.empty() && entries.back().slot == 0) {
    // Below a wrapper that waits for its operator, what comes first says where the wrapper belongs.
    const Scope* scope = path.innermost();
    if (scope != nullptr && scope->deferred && entries[scope->entry].slot == 0)
      return begin_other_operator(op, token, thread);
    resolve(*own, path);
  }
  ThreadTree::Place* above = innermost_place(*own, path);
  if (above == nullptr) return false;
  if (Monitor::instance().native() != nullptr) [[unlikely]]
    above = below_native(*own, path, above, token, reinterpret_cast<uintptr_t>(op.name));
  ThreadTree::Place* const place = operator_place(*own, *above, path.frames(), op);
  if (place == nullptr) return false;
  place->prefetch(*above);
  const NodeId node = place->id();
  Scope& scope =
      path.push(token, ScopeKind::kOperator, static_cast<PathFrameId>(place->number()), uint64_t{raw(node)} + 1);
  scope.place = place;
  scope.sequence = op.sequence;
  scope.forward_thread = op.forward_thread;
  ++thread.operators_open;
  thread.published.enter(path.scopes().size(), own->token(node), PublishedPlaces::anchor_of(scope), scope.token);
  if (op.sequence >= 0) {
    if (!own->bound) [[unlikely]]
      bind(*own, op.thread);
    if (own->forward != nullptr) own->forward->ring.store(op.sequence, node);
    own->follow_autograd(op.sequence, node);
  }
  if (thread.operators_open == 1) own->outermost_begins();
  scope.begin_ns = now_ns();
  return true;
}

bool Collector::end_operator(const void* token, int64_t time_ns, ThreadState& thread) {
  CallPath& path = thread.path;
  StackOf<Scope>& scopes = path.scopes();
  if (scopes.empty()) return false;
  const Scope& scope = scopes.back();
  if (scope.token != token || scope.kind != ScopeKind::kOperator || scope.unheard || scope.earlier_ns != 0 ||
      scope.data_row != 0 || thread.unheard != 0 || path.is_disturbed())
    return false;
  Lane* const own = lane(thread);
  if (own == nullptr) return false;
  if (scope.place == nullptr) {
    if (thread.operators_open > 0) --thread.operators_open;
    on_operator_end(time_ns, thread);
    path.pop();
    thread.published.leave(path.scopes().size());
    return true;
  }
  ThreadTree& tree = *own->tree;
  ThreadTree::Place& place = *place_of(scope);
  const int64_t duration_ns = std::max<int64_t>(time_ns - scope.begin_ns, 0);
  const auto frame = static_cast<PathFrameId>(place.number());
  if (scope.children == 0) {
    tree.add(place, kLeaf, duration_ns);
  } else {
    tree.add(place, kCall, duration_ns);
    tree.add(place, kOwn, std::max<int64_t>(duration_ns - scope.child_ns, 0));
    if (scope.children == 1 && scope.last_child_frame == frame) {
      tree.add(NodeId{scope.last_child_node}, MetricKind::kRepeatedCallTime, kCpuDevice, kNoStream,
               scope.last_child_ns);
    }
  }
  if (scopes.size() > 1) {
    Scope& above = scopes[scopes.size() - 2];
    above.child_ns += duration_ns;
    ++above.children;
    above.last_child_node = raw(place.id());
    above.last_child_ns = duration_ns;
    above.last_child_frame = frame;
  }
  if (thread.operators_open > 0 && --thread.operators_open == 0) {
    own->outermost_ended(scope.begin_ns, duration_ns);
  }
  if (window_.is_open()) [[unlikely]]
    record(scope, place.id(), *own, duration_ns, nullptr);
  path.pop();
  thread.published.leave(path.scopes().size());
  return true;
}

}  // namespace leadline
