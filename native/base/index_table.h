// Open-addressing set of positions in some array, for interning: the array holds the keys, this finds their positions.
//
// Eight bytes a slot: half of the hash and the position. The half also gives the place, so growing needs no key. One
// thread at a time uses it; no allocation on look-up.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

namespace leadline {

class IndexTable {
 public:
  static constexpr std::uint32_t kAbsent = 0xffffffffu;

  // Position for which `equal(position)` holds among those inserted with this hash, or kAbsent.
  template <class Equal>
  std::uint32_t find(std::uint64_t hash, Equal&& equal) const noexcept {
    if (slots_ == nullptr) return kAbsent;
    const auto tag = tag_of(hash);
    for (std::size_t i = tag & mask_;; i = (i + 1) & mask_) {
      const Slot slot = slots_[i];
      if (slot.position == kAbsent) return kAbsent;
      if (slot.tag == tag && equal(slot.position)) return slot.position;
    }
  }

  // Makes room for one more; false when there is no memory.
  bool reserve_one() noexcept {
    if (slots_ != nullptr && (used_ + 1) * 3 <= (mask_ + 1) * 2) return true;
    const std::size_t capacity = slots_ == nullptr ? 64 : (mask_ + 1) * 2;
    std::unique_ptr<Slot[]> grown(new (std::nothrow) Slot[capacity]);
    if (grown == nullptr) return false;
    grown.swap(slots_);
    const std::size_t old_capacity = grown == nullptr ? 0 : mask_ + 1;
    mask_ = capacity - 1;
    held_bytes_.store(capacity * sizeof(Slot), std::memory_order_relaxed);
    for (std::size_t i = 0; i < old_capacity; ++i) {
      if (grown[i].position != kAbsent) place(grown[i]);
    }
    return true;
  }

  // Only after reserve_one() has returned true.
  void insert(std::uint64_t hash, std::uint32_t position) noexcept {
    place({tag_of(hash), position});
    ++used_;
  }

  void clear() noexcept {
    slots_.reset();
    mask_ = used_ = 0;
    held_bytes_.store(0, std::memory_order_relaxed);
  }

  // Any thread.
  std::size_t held_bytes() const noexcept { return held_bytes_.load(std::memory_order_relaxed); }

 private:
  struct Slot {
    std::uint32_t tag = 0;
    std::uint32_t position = kAbsent;
  };
  static std::uint32_t tag_of(std::uint64_t hash) noexcept { return static_cast<std::uint32_t>(hash); }
  void place(Slot slot) noexcept {
    std::size_t i = slot.tag & mask_;
    while (slots_[i].position != kAbsent) i = (i + 1) & mask_;
    slots_[i] = slot;
  }

  std::unique_ptr<Slot[]> slots_;
  std::size_t mask_ = 0;
  std::size_t used_ = 0;
  std::atomic<std::size_t> held_bytes_{0};
};

}  // namespace leadline
