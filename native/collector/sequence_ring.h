// Which node of a thread ran the forward operator of an autograd sequence number.
//
// Sequence numbers of a thread only grow, so a ring indexed by the number serves: written by the forward thread, read
// by any autograd thread. A look-up of a number that was overwritten says "not found" rather than something wrong, and
// asks for a larger ring, so that memory follows the size of the graph and not the length of the run.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/ids.h"

namespace leadline {

class SequenceRing {
 public:
  static constexpr uint32_t kSmallSize = 1u << 9;   // of a thread that does little
  static constexpr uint32_t kFirstSize = 1u << 15;  // reached without a look-up that failed
  static constexpr uint32_t kLargestSize = 1u << 20;
  static constexpr uint32_t kMostNodes = 1024;    // that one operator makes
  static constexpr uint32_t kInterruptions = 16;  // remembered

  // The forward thread only. The innermost operator of a number comes last and stays: it made the autograd node.
  void store(int64_t sequence, NodeId node) noexcept {
    const auto number = static_cast<uint64_t>(sequence);
    Table* table = table_.load(std::memory_order_relaxed);
    if (table == nullptr || wanted_.load(std::memory_order_relaxed) > table->mask) [[unlikely]] {
      table = grow();
      if (table == nullptr) return;
    }
    if (table->mask + 1 < kFirstSize) [[unlikely]] {
      const uint64_t before = table->entries[number & table->mask].load(std::memory_order_relaxed);
      if (before != 0 && (before >> 32) != ((number + 1) & 0xffffffffu)) table = grow();
    }
    table->entries[number & table->mask].store(pack(number, node), std::memory_order_release);
  }

  // Any thread. kNoNode also where the operator that made it is not known for certain.
  NodeId find(int64_t sequence) noexcept {
    const auto number = static_cast<uint64_t>(sequence);
    const Table* table = table_.load(std::memory_order_acquire);
    if (table == nullptr) return kNoNode;
    const uint64_t packed = table->entries[number & table->mask].load(std::memory_order_acquire);
    if ((packed >> 32) == mark(number)) return NodeId{static_cast<uint32_t>(packed)};
    if (!newer(packed, number)) return maker(*table, number);
    if (table->mask + 1 < kLargestSize)
      wanted_.store(static_cast<uint32_t>(table->mask + 1), std::memory_order_relaxed);
    return kNoNode;
  }

  // What has run since the last number was stored is not known (a pause). The forward thread stores nothing meanwhile.
  void interrupt() noexcept;

  // Forgets every number; the forward thread has changed.
  void clear() noexcept;

  size_t held_bytes() const noexcept { return held_.load(std::memory_order_relaxed); }

 private:
  struct Table {
    explicit Table(uint32_t size) : entries(size), mask(size - 1) {}
    std::vector<std::atomic<uint64_t>> entries;
    uint64_t mask;
  };

  static uint64_t pack(uint64_t number, NodeId node) noexcept {
    return ((number + 1) << 32) | raw(node);  // + 1: zero means empty
  }
  static uint32_t mark(uint64_t number) noexcept { return static_cast<uint32_t>(number + 1); }
  static bool newer(uint64_t packed, uint64_t number) noexcept {
    return packed != 0 && static_cast<int32_t>(static_cast<uint32_t>(packed >> 32) - mark(number)) > 0;
  }
  // An operator may make several autograd nodes (an in-place change of a view, lists of tensors), whose numbers follow
  // its own: a number that no operator began with is that of the one before.
  NodeId maker(const Table& table, uint64_t number) const noexcept;
  bool certain(uint32_t stored) const noexcept;

  Table* grow() noexcept;

  std::atomic<Table*> table_{nullptr};
  std::vector<std::unique_ptr<Table>> tables_;  // outgrown ones stay: a reader may be in them
  std::atomic<uint32_t> wanted_{0};             // a ring of this size lost a number that was still wanted
  std::atomic<size_t> held_{0};
  // The last numbers before interruptions, as in Table; the oldest are overwritten.
  std::array<std::atomic<uint32_t>, kInterruptions> interrupted_{};
  std::atomic<uint32_t> interruptions_{0};
};

}  // namespace leadline
