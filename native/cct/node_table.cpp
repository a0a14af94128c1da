#include "cct/node_table.h"

namespace leadline {

NodeId NodeTable::child_by_hash(NodeId parent, FrameId frame) noexcept {
  const std::uint64_t hash = hash_of(parent, frame);
  std::uint32_t number =
      index_.find(hash, [&](std::uint32_t at) { return nodes_[at].parent_ == parent && nodes_[at].frame_ == frame; });
  if (number == IndexTable::kAbsent) {
    if (!budget_->take() || !index_.reserve_one()) return kNoNode;
    number = raw(append(parent, frame));
    if (number == raw(kNoNode)) return kNoNode;
    index_.insert(hash, number);
  }
  nodes_[raw(parent)].visit(&nodes_[number]);
  return NodeId{number};
}

NodeId NodeTable::append(NodeId parent, FrameId frame) noexcept {
  const std::uint32_t number = nodes_.size();
  if (recorded_.size() == number && recorded_.emplace_back(0U) == nullptr) return kNoNode;
  return nodes_.emplace_back(NodeId{number}, parent, frame) != nullptr ? NodeId{number} : kNoNode;
}

Accumulator* NodeTable::find_in_chain(NodeId id, std::uint64_t packed_key) const noexcept {
  Accumulator* accumulator = nodes_[raw(id)].first_.load(std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < kShortChain && accumulator != nullptr; ++i) {
    if (accumulator->packed_key() == packed_key) return accumulator;
    accumulator = accumulator->next();
  }
  if (accumulator == nullptr) return nullptr;
  const std::uint32_t known = accumulator_index_.find(hash_of(id, packed_key), [&](std::uint32_t at) {
    return indexed_[at].node == id && indexed_[at].accumulator->packed_key() == packed_key;
  });
  return known == IndexTable::kAbsent ? nullptr : indexed_[known].accumulator;
}

Accumulator* NodeTable::make_accumulator(NodeId id, std::uint64_t packed_key) noexcept {
  if (MetricKey::unpack(packed_key).stream != kNoStream && has_longest_chain(id)) return nullptr;
  return budget_->take_accumulator() ? append_accumulator(id, packed_key) : nullptr;
}

bool NodeTable::has_longest_chain(NodeId id) const noexcept {
  const Accumulator* first = nodes_[raw(id)].first_.load(std::memory_order_relaxed);
  return first != nullptr && first->chain_length >= kLongestChain;
}

Accumulator* NodeTable::append_accumulator(NodeId id, std::uint64_t packed_key) noexcept {
  Place& node = nodes_[raw(id)];
  Accumulator* const first = node.first_.load(std::memory_order_relaxed);
  const std::uint32_t length = first == nullptr ? 0 : first->chain_length;
  const bool indexed = length >= kShortChain;
  if (indexed && !accumulator_index_.reserve_one()) return nullptr;
  Accumulator* made = accumulators_.emplace_back(packed_key);
  if (made == nullptr) return nullptr;
  if (first == nullptr) {
    node.first_.store(made, std::memory_order_release);
  } else {
    // Behind the last one of a short chain, so that measurements stay in the order in which they are repeated.
    Accumulator* before = first;
    for (std::uint32_t i = 1; i < kShortChain && before->next() != nullptr; ++i) before = before->next();
    if (indexed) {
      const std::uint32_t number = indexed_.size();
      if (indexed_.emplace_back(Indexed{id, made}) == nullptr) return nullptr;
      accumulator_index_.insert(hash_of(id, packed_key), number);
      made->set_next(before->next());
    }
    before->set_next(made);
    ++first->chain_length;
  }
  node.cursor_ = node.first_.load(std::memory_order_relaxed);
  return made;
}

NodeTable::Added NodeTable::add_elsewhere(NodeId node, MetricKey key, const MetricValues& values) noexcept {
  if (key.stream != kNoStream) {
    key.stream = kNoStream;
    if (Accumulator* without = find_or_make(nodes_[raw(node)], key.packed()); without != nullptr) {
      without->merge(values);
      return has_longest_chain(node) ? Added::kWithoutStream : Added::kAbove;
    }
  }
  for (NodeId above = node; above != kNoNode; above = nodes_[raw(above)].parent_) {
    if (Accumulator* known = find_in_chain(above, key.packed()); known != nullptr) {
      known->merge(values);
      return Added::kAbove;
    }
  }
  // The root's are few, and outside of the budget.
  Accumulator* made = append_accumulator(NodeId{0}, key.packed());
  if (made == nullptr) return Added::kNowhere;
  made->merge(values);
  return Added::kAbove;
}

}  // namespace leadline
