// What memory is what: allocations of the driver, and tensors inside them, as one sorted list of ranges that do not
// overlap.
//
// A tensor hides the allocation below it; what no tensor covers is the allocation's. Every change makes a new epoch, so
// a list that was copied to a device is known to be stale by one number. Safe on every thread; no memory is taken after
// the constructor, and what finds no room is counted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "base/spin_lock.h"

namespace leadline::sanitizer {

struct Range {
  std::uint64_t begin;
  std::uint64_t end;
  std::uint64_t origin;  // where the object begins
  std::uint32_t object;
};

// An object that came to be, for who names them.
struct Birth {
  std::uint64_t address;
  std::uint64_t bytes;
  std::uint64_t place;  // of its allocation
  std::int64_t launch;  // how many launches there were before
  std::uint32_t object;
  std::int32_t device;
  std::uint32_t tensor;  // 1: told by the framework, 0: an allocation of the driver
  std::uint32_t unused;
};
static_assert(sizeof(Birth) == 48);

class ObjectTable {
 public:
  // `room`: how many ranges at most, as the device half takes them.
  explicit ObjectTable(std::size_t room);

  void allocated(std::uint64_t address, std::uint64_t bytes, std::int32_t device, std::uint64_t place,
                 std::int64_t launch, bool tensor) noexcept;
  void freed(std::uint64_t address, bool tensor) noexcept;

  // The list as it is now goes to `put(index, range)`, as far as there is room; its length. *epoch: its number.
  template <class Put>
  std::size_t copy(std::size_t room, std::uint64_t* epoch, const Put& put) noexcept {
    const std::lock_guard lock(lock_);
    if (merged_epoch_ != epoch_) merge();
    for (std::size_t i = 0; i < merged_.size() && i < room; ++i) put(i, merged_[i]);
    *epoch = epoch_;
    return merged_.size();
  }
  std::uint64_t epoch() noexcept;
  // Takes what came to be since the last call.
  std::size_t births(Birth* to, std::size_t room) noexcept;
  std::uint64_t lost() noexcept;

 private:
  using Ranges = std::vector<Range>;
  bool insert(Ranges& ranges, const Range& range) noexcept;
  void merge() noexcept;
  void put(const Range& range) noexcept;

  SpinLock lock_;
  const std::size_t room_;
  Ranges allocations_;
  Ranges tensors_;
  Ranges merged_;
  std::vector<Birth> births_;
  std::uint64_t epoch_ = 1;
  std::uint64_t merged_epoch_ = 0;
  std::uint64_t lost_ = 0;
  std::uint32_t next_ = 0;
};

}  // namespace leadline::sanitizer
