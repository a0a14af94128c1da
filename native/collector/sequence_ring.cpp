#include "collector/sequence_ring.h"

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

void SequenceRing::clear() noexcept {
  Table* current = table_.load(std::memory_order_relaxed);
  if (current == nullptr) return;
  for (auto& entry : current->entries) entry.store(0, std::memory_order_release);
  wanted_.store(0, std::memory_order_relaxed);
}

}  // namespace leadline
