#include "collector/sequence_ring.h"

#include <algorithm>
#include <new>

namespace leadline {

SequenceRing::Table* SequenceRing::grow() noexcept {
  Table* current = table_.load(std::memory_order_relaxed);
  try {
    auto larger =
        std::make_unique<Table>(current == nullptr ? kSmallSize : static_cast<uint32_t>(current->mask + 1) * 4);
    if (current != nullptr) {
      for (const auto& entry : current->entries) {
        const uint64_t packed = entry.load(std::memory_order_relaxed);
        if (packed == 0) continue;
        larger->entries[((packed >> 32) - 1) & larger->mask].store(packed, std::memory_order_relaxed);
      }
    }
    held_.fetch_add(larger->entries.size() * sizeof(uint64_t), std::memory_order_relaxed);
    Table* const table = larger.get();
    tables_.push_back(std::move(larger));
    table_.store(table, std::memory_order_release);
    return table;
  } catch (const std::bad_alloc&) {
    wanted_.store(0, std::memory_order_relaxed);  // the ring keeps its size and forgets the oldest numbers
    return current;
  }
}

NodeId SequenceRing::maker(const Table& table, uint64_t number) const noexcept {
  for (uint64_t before = number; before-- > 0 && number - before <= kMostNodes;) {
    const uint64_t packed = table.entries[before & table.mask].load(std::memory_order_acquire);
    if (newer(packed, before)) return kNoNode;  // it was overwritten, or a thread is just storing
    if ((packed >> 32) != mark(before)) continue;
    return certain(mark(before)) ? NodeId{static_cast<uint32_t>(packed)} : kNoNode;
  }
  return kNoNode;
}

// Whether measuring went on after that number was stored. Of more interruptions than are remembered it is not known
// whether an older number was the last before one.
bool SequenceRing::certain(uint32_t stored) const noexcept {
  const uint32_t interruptions = interruptions_.load(std::memory_order_acquire);
  bool after_one = interruptions <= kInterruptions;
  for (uint32_t i = 0; i < std::min(interruptions, kInterruptions); ++i) {
    const uint32_t last = interrupted_[i].load(std::memory_order_acquire);
    if (last == stored) return false;
    after_one = after_one || static_cast<int32_t>(stored - last) > 0;
  }
  return after_one;
}

void SequenceRing::interrupt() noexcept {
  const Table* table = table_.load(std::memory_order_relaxed);
  if (table == nullptr) return;
  uint32_t last = 0;
  for (const auto& entry : table->entries) {
    const uint64_t packed = entry.load(std::memory_order_relaxed);
    if (packed == 0) continue;
    const auto stored = static_cast<uint32_t>(packed >> 32);
    if (last == 0 || static_cast<int32_t>(stored - last) > 0) last = stored;
  }
  const uint32_t count = interruptions_.load(std::memory_order_relaxed);
  interrupted_[count % kInterruptions].store(last, std::memory_order_release);
  interruptions_.store(count + 1, std::memory_order_release);
}

void SequenceRing::clear() noexcept {
  Table* current = table_.load(std::memory_order_relaxed);
  if (current == nullptr) return;
  for (auto& entry : current->entries) entry.store(0, std::memory_order_release);
  wanted_.store(0, std::memory_order_relaxed);
  interruptions_.store(0, std::memory_order_relaxed);
}

}  // namespace leadline
