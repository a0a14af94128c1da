// Where device work of one kind, launched from one place, hangs in the tree: what was found the last time.
//
// Direct-mapped and bounded: what falls on the same slot is looked up in the tree again. The thread that reports device
// work only.
#pragma once

#include <cstdint>
#include <memory>
#include <new>

#include "base/hash.h"
#include "base/ids.h"
#include "leadline/monitor.h"

namespace leadline {

class PlaceCache {
 public:
  struct Key {
    leadline_context context = 0;
    leadline_context via = 0;
    uint64_t frame = 0;  // the provider's number; 0: the place itself
    uint64_t node = 0;   // of a graph whose nodes are shown apart
    uint8_t via_kind = 0;
    friend bool operator==(const Key&, const Key&) = default;
  };

  // kNoNode when it is not known.
  NodeId find(const Key& key) const noexcept {
    if (slots_ == nullptr) return kNoNode;
    const Slot& slot = slots_[index(key)];
    return slot.key == key ? slot.node : kNoNode;
  }
  void put(const Key& key, NodeId node) noexcept {
    if (slots_ == nullptr) slots_.reset(new (std::nothrow) Slot[kSlots]);
    if (slots_ != nullptr) slots_[index(key)] = {key, node};
  }
  void clear() noexcept { slots_.reset(); }

  size_t held_bytes() const noexcept { return slots_ == nullptr ? 0 : kSlots * sizeof(Slot); }

 private:
  static constexpr uint64_t kSlots = 1u << 14;
  struct Slot {
    Key key;
    NodeId node = kNoNode;
  };
  static uint64_t index(const Key& key) noexcept {
    const uint64_t way = hash_mix(key.via ^ key.via_kind, key.node);
    return hash_mix(key.context ^ way, key.frame) & (kSlots - 1);
  }
  std::unique_ptr<Slot[]> slots_;
};

}  // namespace leadline
