// Walks at operators, by where they began: what came of each, and what it rests on. A program in a loop calls the same
// operators from the same places, and then a few words of the stack are compared instead of being followed.
//
// Bounded: with too many, all are forgotten. One thread's.
#pragma once

#include <cstdint>
#include <new>
#include <vector>

#include "base/hash.h"
#include "base/ids.h"
#include "base/index_table.h"
#include "stack/native_source.h"

namespace leadline {

class RememberedWalks {
 public:
  struct Key {
    NodeId above{};          // what the operator was called from
    uint64_t operation = 0;  // any number for its name
    uintptr_t begin = 0;
    uintptr_t end = 0;
    friend bool operator==(const Key&, const Key&) = default;
  };
  // Valid until the next call. Throws std::bad_alloc.
  NativeWalks& operator[](const Key& key) {
    const uint64_t hash = hash_mix(hash_mix(raw(key.above), key.operation), hash_mix(key.begin, key.end));
    const uint32_t known = index_.find(hash, [&](uint32_t at) { return known_[at].key == key; });
    if (known != IndexTable::kAbsent) [[likely]]
      return known_[known].walks;
    if (known_.size() == kMost) clear();
    if (!index_.reserve_one()) throw std::bad_alloc();
    known_.push_back({key, {}});
    index_.insert(hash, static_cast<uint32_t>(known_.size() - 1));
    return known_.back().walks;
  }
  void clear() noexcept {
    known_.clear();
    index_.clear();
  }

 private:
  static constexpr size_t kMost = 1u << 14;
  struct Known {
    Key key;
    NativeWalks walks;
  };
  std::vector<Known> known_;
  IndexTable index_;
};

}  // namespace leadline
