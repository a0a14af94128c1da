// The nodes of a calling context tree and what was measured at them: one writer, concurrent readers.
//
// A node is (parent, frame); a child's number is always larger than its parent's. Look-ups that hit allocate nothing.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "base/chunked_array.h"
#include "base/hash.h"
#include "base/ids.h"
#include "base/index_table.h"
#include "cct/accumulator.h"

namespace leadline {

// How many nodes and accumulators all trees of a process together may still make.
class NodeBudget {
 public:
  static constexpr std::uint64_t kAccumulatorsPerNode = 4;

  explicit NodeBudget(std::uint64_t nodes) noexcept { reset(nodes); }
  bool take() noexcept { return take(nodes_); }
  bool take_accumulator() noexcept { return take(accumulators_); }
  void reset(std::uint64_t nodes) noexcept {
    const std::uint64_t most = std::numeric_limits<std::int64_t>::max() / kAccumulatorsPerNode;
    const auto count = static_cast<std::int64_t>(std::min(nodes, most));
    nodes_.store(count, std::memory_order_relaxed);
    accumulators_.store(count * static_cast<std::int64_t>(kAccumulatorsPerNode), std::memory_order_relaxed);
  }

 private:
  static bool take(std::atomic<std::int64_t>& left) noexcept {
    if (left.load(std::memory_order_relaxed) <= 0) return false;
    return left.fetch_sub(1, std::memory_order_relaxed) > 0;
  }
  std::atomic<std::int64_t> nodes_;
  std::atomic<std::int64_t> accumulators_;
};

class NodeTable {
 public:
  // Where a node is: what the writer keeps so that the next measurement needs no look-up. Nodes never move.
  class alignas(64) Place {
   public:
    Place(NodeId id, NodeId parent, FrameId frame) noexcept : parent_(parent), frame_(frame), id_(id) {}

    NodeId id() const noexcept { return id_; }
    // The child that was given this name, if it is the one that is likely to come now. The name is whatever tells
    // children apart to who gives it, with a number that he wants to find again.
    Place* named_child(std::uintptr_t name) noexcept {
      return likely_child([name](const Place& child) { return child.name_ == name; });
    }
    void name(std::uintptr_t name, std::uint32_t number) noexcept {
      name_ = name;
      number_ = number;
    }
    std::uint32_t number() const noexcept { return number_; }
    // What comes next is fetched ahead, while the program does what is measured: the measurement of this node, which
    // may be two, its first child and its sibling.
    void prefetch(const Place& parent) const noexcept {
      __builtin_prefetch(cursor_, 1);
      __builtin_prefetch(cursor_ + 1, 1);
      __builtin_prefetch(expected_, 1);
      __builtin_prefetch(parent.expected_, 1);
    }

   private:
    friend class NodeTable;
    // Programs repeat themselves: what came after the last child the last time is likely to come now.
    template <class Wanted>
    Place* likely_child(const Wanted& wanted) noexcept {
      Place* const found = expected_;
      if (found == nullptr) return nullptr;
      if (!wanted(*found)) return wanted(*last_child_) ? last_child_ : nullptr;
      last_child_ = found;
      if (found->successor_ != nullptr) expected_ = found->successor_;
      return found;
    }
    void visit(Place* child) noexcept {
      if (last_child_ != nullptr) last_child_->successor_ = child;
      last_child_ = child;
      expected_ = child->successor_ != nullptr ? child->successor_ : child;
    }

    NodeId parent_;
    FrameId frame_;
    std::atomic<Accumulator*> first_{nullptr};
    // The rest is the writer's: where the next add and the next child are likely to be found.
    Accumulator* cursor_ = nullptr;
    Place* expected_ = nullptr;    // the child that is likely to be visited now
    Place* last_child_ = nullptr;  // the one visited last
    Place* successor_ = nullptr;   // the sibling that was visited after this node
    std::uintptr_t name_ = 0;
    std::uint32_t number_ = 0;
    NodeId id_;
  };
  static_assert(sizeof(Place) == 64);

  explicit NodeTable(NodeBudget& budget) noexcept : budget_(&budget) {}

  // --- writer only -------------------------------------------------------------------------------------------------

  // The child of `parent` with this frame, made when new; kNoNode when the budget is spent or there is no memory.
  NodeId child(NodeId parent, FrameId frame) noexcept {
    Place& from = nodes_[raw(parent)];
    const Place* known = from.likely_child([frame](const Place& child) { return child.frame_ == frame; });
    return known != nullptr ? known->id_ : child_by_hash(parent, frame);
  }

  Place* place(NodeId node) noexcept { return &nodes_[raw(node)]; }

  // A node outside of look-up by frame and of the budget: the root (parent kNoNode), or a graft (after take_budget()).
  // kNoNode when there is no memory.
  NodeId append(NodeId parent, FrameId frame) noexcept;
  bool take_budget() noexcept { return budget_->take(); }

  // What became of a measurement. It is never lost while the tree has a root.
  enum class Added : std::uint8_t {
    kHere,
    kWithoutStream,  // the node has too many streams: it is kept there without one
    kAbove,    // the budget is spent or there is no memory: it is kept at the nearest node above that has the like
    kNowhere,  // no memory for the root's either
  };

  Added add(NodeId node, MetricKey key, std::int64_t value) noexcept { return add(nodes_[raw(node)], key, value); }
  Added add(Place& place, MetricKey key, std::int64_t value) noexcept {
    Accumulator* accumulator = find_or_make(place, key.packed());
    if (accumulator == nullptr) [[unlikely]]
      return add_elsewhere(place.id_, key, MetricValues::of(value));
    accumulator->add(value);
    return Added::kHere;
  }
  Added add(NodeId node, MetricKey key, const MetricValues& values) noexcept {
    Accumulator* accumulator = find_or_make(nodes_[raw(node)], key.packed());
    if (accumulator == nullptr) return add_elsewhere(node, key, values);
    accumulator->merge(values);
    return Added::kHere;
  }
  // A call at the node was recorded by autograd. Beside the other measurements, since nearly every operator of a
  // training step is: neighbours share a cache line.
  void count_recorded(NodeId node) noexcept {
    std::atomic<std::uint64_t>& calls = recorded_[raw(node)];
    calls.store(calls.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  // False when there is no memory for a new accumulator.
  bool merge(NodeId node, MetricKey key, const MetricValues& values) noexcept {
    Accumulator* accumulator = find_or_make(nodes_[raw(node)], key.packed());
    // The number of streams is bounded where they are measured; what several trees hold together may be more.
    if (accumulator == nullptr && budget_->take_accumulator()) accumulator = append_accumulator(node, key.packed());
    if (accumulator == nullptr) return false;
    accumulator->merge(values);
    return true;
  }

  // Forgets what was measured; the nodes stay, and rooms for measurements with a count of 0.
  void reset_metrics() noexcept {
    for (std::uint32_t at = 0; at < accumulators_.size(); ++at) accumulators_[at].reset();
  }
  // Forgets the names of places: who gave them is gone.
  void forget_names() noexcept {
    for (std::uint32_t at = 0; at < nodes_.size(); ++at) nodes_[at].name_ = 0;
  }

  // --- any thread, for ids below size() or received from the writer ------------------------------------------------

  NodeId parent(NodeId node) const noexcept { return nodes_[raw(node)].parent_; }
  FrameId frame(NodeId node) const noexcept { return nodes_[raw(node)].frame_; }
  std::uint32_t size() const noexcept { return nodes_.size(); }

  // Calls f(MetricKey, MetricValues) for everything measured at the node.
  template <class F>
  void for_each_metric(NodeId node, F&& f) const {
    const Accumulator* accumulator = nodes_[raw(node)].first_.load(std::memory_order_acquire);
    for (; accumulator != nullptr; accumulator = accumulator->next()) {
      f(MetricKey::unpack(accumulator->packed_key()), accumulator->values());
    }
    const std::uint64_t recorded = recorded_[raw(node)].load(std::memory_order_relaxed);
    if (recorded == 0) return;
    f(MetricKey{MetricKind::kRecorded},
      MetricValues{recorded, static_cast<std::int64_t>(recorded), 1, 1, static_cast<double>(recorded)});
  }

  std::size_t held_bytes() const noexcept {
    return nodes_.held_bytes() + recorded_.held_bytes() + accumulators_.held_bytes() + index_.held_bytes() +
           accumulator_index_.held_bytes() + indexed_.held_bytes();
  }

 private:
  static std::uint64_t hash_of(NodeId parent, FrameId frame) noexcept { return hash_mix(raw(parent), raw(frame)); }

  // Of one node: found one after the other, and from there on by hash.
  static constexpr std::uint32_t kShortChain = 8;
  static constexpr std::uint32_t kLongestChain = 512;  // of those with a stream; the others are few
  static std::uint64_t hash_of(NodeId node, std::uint64_t packed_key) noexcept {
    return hash_mix(raw(node), packed_key);
  }

  NodeId child_by_hash(NodeId parent, FrameId frame) noexcept;
  Accumulator* find_in_chain(NodeId id, std::uint64_t packed_key) const noexcept;
  Accumulator* make_accumulator(NodeId id, std::uint64_t packed_key) noexcept;
  Accumulator* append_accumulator(NodeId id, std::uint64_t packed_key) noexcept;
  bool has_longest_chain(NodeId id) const noexcept;
  Added add_elsewhere(NodeId node, MetricKey key, const MetricValues& values) noexcept;

  // Measurements repeat in the same order at a node, so the one after the last hit is tried first.
  Accumulator* find_or_make(Place& place, std::uint64_t packed_key) noexcept {
    Accumulator* accumulator = place.cursor_;
    if (accumulator == nullptr || accumulator->packed_key() != packed_key) {
      accumulator = find_in_chain(place.id_, packed_key);
      if (accumulator == nullptr) return make_accumulator(place.id_, packed_key);
    }
    Accumulator* next = accumulator->next();
    place.cursor_ = next != nullptr ? next : place.first_.load(std::memory_order_relaxed);
    return accumulator;
  }

  NodeBudget* budget_;
  ChunkedArray<Place> nodes_;
  ChunkedArray<std::atomic<std::uint64_t>> recorded_;  // by node
  ChunkedArray<Accumulator> accumulators_;
  IndexTable index_;
  // Accumulators of long chains, all but the first of each, and where they are found by node and key.
  struct Indexed {
    NodeId node;
    Accumulator* accumulator;
  };
  ChunkedArray<Indexed> indexed_;
  IndexTable accumulator_index_;
};

}  // namespace leadline
