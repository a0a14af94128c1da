#include "cct/node_table.h"

namespace leadline {

NodeId NodeTable::child_by_hash(NodeId parent, FrameId frame) noexcept {
  const std::uint64_t hash = hash_of(parent, frame);
  std::uint32_t number = index_.find(hash, [&](std::uint32_t at) {
    const Node& node = nodes_[at];
    return node.parent == parent && node.frame == frame;
  });
  if (number == IndexTable::kAbsent) {
    if (!budget_->take() || !index_.reserve_one()) return kNoNode;
    number = raw(append(parent, frame));
    if (number == raw(kNoNode)) return kNoNode;
    index_.insert(hash, number);
  }
  const std::uint32_t before = nodes_[raw(parent)].last_child;
  if (before != raw(kNoNode)) nodes_[before].successor = number;
  nodes_[raw(parent)].last_child = number;
  return NodeId{number};
}

NodeId NodeTable::append(NodeId parent, FrameId frame) noexcept {
  const std::uint32_t number = nodes_.size();
  return nodes_.emplace_back(parent, frame) != nullptr ? NodeId{number} : kNoNode;
}

Accumulator* NodeTable::make_accumulator(Node& node, std::uint64_t packed_key) noexcept {
  Accumulator* made = accumulators_.emplace_back(packed_key);
  if (made == nullptr) return nullptr;
  // At the end, so that a node's measurements stay in the order in which they are repeated.
  Accumulator* last = node.first.load(std::memory_order_relaxed);
  if (last == nullptr) {
    node.first.store(made, std::memory_order_release);
  } else {
    while (last->next() != nullptr) last = last->next();
    last->set_next(made);
  }
  node.cursor = node.first.load(std::memory_order_relaxed);
  return made;
}

}  // namespace leadline
