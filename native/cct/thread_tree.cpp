#include "cct/thread_tree.h"

#include <algorithm>
#include <mutex>
#include <new>

namespace leadline {

void ThreadStats::looked_at(std::int64_t ran_ns, std::int64_t now_ns) noexcept {
  constexpr auto relaxed = std::memory_order_relaxed;
  const std::lock_guard hold(looking_);
  const std::int64_t before_ns = last_ns.load(relaxed) == 0 ? first_ns.load(relaxed) : last_ns.load(relaxed);
  const std::int64_t until_ns = std::max(now_ns, before_ns);
  cpu_ns.store(std::min(ran_ns, cpu_ns.load(relaxed) + until_ns - before_ns), relaxed);
  last_ns.store(until_ns, relaxed);
}

ThreadStats::Times ThreadStats::times() const noexcept {
  constexpr auto relaxed = std::memory_order_relaxed;
  const std::lock_guard hold(looking_);
  return {std::max<std::int64_t>(0, last_ns.load(relaxed) - first_ns.load(relaxed)), cpu_ns.load(relaxed)};
}

ThreadTree::ThreadTree(ThreadIndex index, std::uint64_t tid, std::string_view name, NodeBudget& budget,
                       std::uint32_t max_frames, LossCounters& losses)
    : index_(index),
      tid_(tid),
      // A frame has four strings; most share file and module, so this is never the limit that is reached first.
      strings_(max_frames < (1u << 29) ? max_frames * 4 + 1024 : ~0u),
      frames_(max_frames),
      nodes_(budget),
      losses_(&losses) {
  bool refused = strings_.size() == 0;  // not even the empty one
  FrameKey key;
  key.kind = FrameKind::kThread;
  if (!refused) key.name = strings_.intern(name, &refused);
  name_.store(key.name, std::memory_order_release);
  const FrameId frame = refused ? kNoFrame : frames_.intern(key);
  if (frame == kNoFrame || nodes_.append(kNoNode, frame) == kNoNode) throw std::bad_alloc();
}

NodeId ThreadTree::graft(ThreadIndex thread, NodeId node) noexcept {
  const auto hash_of = [](const GraftTarget& target) { return hash_mix(raw(target.thread), raw(target.node)); };
  const GraftTarget target{thread, node};
  const std::uint32_t known = graft_index_.find(hash_of(target), [&](std::uint32_t at) {
    return grafts_[at].target.thread == thread && grafts_[at].target.node == node;
  });
  if (known != IndexTable::kAbsent) return grafts_[known].node;

  const std::uint32_t number = grafts_.size();
  const NodeId made{nodes_.size()};
  // The target is published before the node, so that a reader who sees the node finds its target.
  if (!nodes_.take_budget() || !graft_index_.reserve_one() || grafts_.emplace_back(Graft{target, made}) == nullptr ||
      nodes_.append(root(), kNoFrame) == kNoNode) {
    count_dropped();
    return root();
  }
  graft_index_.insert(hash_of(target), number);
  return made;
}

ThreadTree::GraftTarget ThreadTree::graft_target(NodeId graft) const noexcept {
  // The last entry at or before it. (An entry whose node could not be made is followed by another for the same number.)
  std::uint32_t low = 0;
  std::uint32_t high = grafts_.size();
  while (low < high) {
    const std::uint32_t middle = low + (high - low) / 2;
    if (raw(grafts_[middle].node) <= raw(graft)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low > 0 && grafts_[low - 1].node == graft) return grafts_[low - 1].target;
  return {kNoThread, kNoNode};
}

StepTable* ThreadTree::make_step_table() noexcept {
  if (owned_step_table_ == nullptr) {
    owned_step_table_.reset(new (std::nothrow) StepTable);
    step_table_.store(owned_step_table_.get(), std::memory_order_release);
  }
  return owned_step_table_.get();
}

std::size_t ThreadTree::held_bytes() const noexcept {
  return sizeof(*this) + (step_table() != nullptr ? sizeof(StepTable) : 0) + strings_.held_bytes() +
         frames_.held_bytes() + nodes_.held_bytes() + grafts_.held_bytes() + graft_index_.held_bytes();
}

void ThreadTree::count_dropped() noexcept {
  losses_->count(LossKind::kNodesDropped, 1,
                 "the calling context tree is full, so new call paths are measured at their callers; "
                 "raise the limit of nodes or name fewer regions");
}

void ThreadTree::count_moved(NodeTable::Added added) noexcept {
  if (added == NodeTable::Added::kWithoutStream) {
    losses_->count(LossKind::kStreamsFolded, 1,
                   "a call path used hundreds of streams; what it did on further ones is shown without a stream");
  } else {
    losses_->count(LossKind::kNodesDropped, 1,
                   "the room for measurements is used up, so further kinds of them are kept at the callers; "
                   "raise the limit of nodes");
  }
}

}  // namespace leadline
