// Live memory blocks by address: open addressing without tombstones, so that it stays fast however long it runs.
//
// One thread at a time. Memory follows the largest number of blocks that were alive at once.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

#include "base/hash.h"

namespace leadline {

class BlockMap {
 public:
  struct Block {
    std::uint64_t address = 0;  // 0: free slot
    std::int64_t bytes = 0;
    std::uint32_t owner = 0;
  };

  // False when there is no memory. `block.address` is not 0 and not in the map.
  bool insert(const Block& block) noexcept {
    if (!reserve_one()) return false;
    place(block);
    ++used_;
    return true;
  }

  // Takes the block out; false when the address is not known.
  bool take(std::uint64_t address, Block& out) noexcept {
    if (used_ == 0) return false;
    std::size_t hole = home(address);
    while (blocks_[hole].address != address) {
      if (blocks_[hole].address == 0) return false;
      hole = (hole + 1) & mask_;
    }
    out = blocks_[hole];
    // Close the hole: a later block of the same run moves in when its home is not behind the hole.
    for (std::size_t at = (hole + 1) & mask_; blocks_[at].address != 0; at = (at + 1) & mask_) {
      const std::size_t distance = (at - home(blocks_[at].address)) & mask_;
      if (distance >= ((at - hole) & mask_)) {
        blocks_[hole] = blocks_[at];
        hole = at;
      }
    }
    blocks_[hole] = Block{};
    --used_;
    return true;
  }

  std::size_t size() const noexcept { return used_; }

  template <class F>
  void for_each(F&& f) const {
    for (std::size_t at = 0; blocks_ != nullptr && at <= mask_; ++at) {
      if (blocks_[at].address != 0) f(static_cast<const Block&>(blocks_[at]));
    }
  }

  // Any thread.
  std::size_t held_bytes() const noexcept { return held_bytes_.load(std::memory_order_relaxed); }

 private:
  std::size_t home(std::uint64_t address) const noexcept {
    return static_cast<std::size_t>(hash_mix(address, address >> 32)) & mask_;
  }
  void place(const Block& block) noexcept {
    std::size_t at = home(block.address);
    while (blocks_[at].address != 0) at = (at + 1) & mask_;
    blocks_[at] = block;
  }
  bool reserve_one() noexcept {
    if (blocks_ != nullptr && (used_ + 1) * 3 <= (mask_ + 1) * 2) return true;
    const std::size_t old_capacity = blocks_ == nullptr ? 0 : mask_ + 1;
    const std::size_t capacity = blocks_ == nullptr ? 256 : old_capacity * 2;
    std::unique_ptr<Block[]> grown(new (std::nothrow) Block[capacity]);
    if (grown == nullptr) return false;
    grown.swap(blocks_);
    mask_ = capacity - 1;
    for (std::size_t i = 0; i < old_capacity; ++i) {
      if (grown[i].address != 0) place(grown[i]);
    }
    held_bytes_.store(capacity * sizeof(Block), std::memory_order_relaxed);
    return true;
  }

  std::unique_ptr<Block[]> blocks_;
  std::size_t mask_ = 0;
  std::size_t used_ = 0;
  std::atomic<std::size_t> held_bytes_{0};
};

}  // namespace leadline
