#include "backends/sanitizer/object_table.h"

#include <algorithm>
#include <mutex>

namespace leadline::sanitizer {

ObjectTable::ObjectTable(std::size_t room) : room_(room) {
  allocations_.reserve(room);
  tensors_.reserve(room);
  merged_.reserve(room);
  births_.reserve(room);
}

// What overlaps a new range is gone, whether or not its end was told.
bool ObjectTable::insert(Ranges& ranges, const Range& range) noexcept {
  const auto ends_after = [](const Range& one, std::uint64_t address) { return one.end <= address; };
  auto first = std::lower_bound(ranges.begin(), ranges.end(), range.begin, ends_after);
  auto last = first;
  while (last != ranges.end() && last->begin < range.end) ++last;
  if (first == last && ranges.size() == ranges.capacity()) return false;
  if (first == last) {
    ranges.insert(first, range);
  } else {
    *first = range;
    ranges.erase(first + 1, last);
  }
  return true;
}

void ObjectTable::allocated(std::uint64_t address, std::uint64_t bytes, std::int32_t device, std::uint64_t place,
                            std::int64_t launch, bool tensor) noexcept {
  if (bytes == 0) return;
  const std::lock_guard lock(lock_);
  if (births_.size() == births_.capacity() ||
      !insert(tensor ? tensors_ : allocations_, {address, address + bytes, address, next_})) {
    ++lost_;
    return;
  }
  births_.push_back({address, bytes, place, launch, next_++, device, tensor ? 1U : 0U, 0});
  ++epoch_;
}

void ObjectTable::freed(std::uint64_t address, bool tensor) noexcept {
  const std::lock_guard lock(lock_);
  Ranges& ranges = tensor ? tensors_ : allocations_;
  const auto found = std::lower_bound(ranges.begin(), ranges.end(), address,
                                      [](const Range& one, std::uint64_t at) { return one.begin < at; });
  if (found == ranges.end() || found->begin != address) return;
  ranges.erase(found);
  ++epoch_;
}

void ObjectTable::put(const Range& range) noexcept {
  if (range.begin >= range.end) return;
  if (merged_.size() < room_) {
    merged_.push_back(range);
  } else {
    ++lost_;
  }
}

void ObjectTable::merge() noexcept {
  merged_.clear();
  auto tensor = tensors_.begin();
  for (const Range& below : allocations_) {
    std::uint64_t from = below.begin;
    for (; tensor != tensors_.end() && tensor->begin < below.end; ++tensor) {
      put({from, std::min(tensor->begin, below.end), below.begin, below.object});
      put(*tensor);
      from = std::max(from, tensor->end);
    }
    put({from, below.end, below.begin, below.object});
  }
  for (; tensor != tensors_.end(); ++tensor) put(*tensor);
  merged_epoch_ = epoch_;
}

std::uint64_t ObjectTable::epoch() noexcept {
  const std::lock_guard lock(lock_);
  return epoch_;
}

std::size_t ObjectTable::births(Birth* to, std::size_t room) noexcept {
  const std::lock_guard lock(lock_);
  const std::size_t count = std::min(room, births_.size());
  std::copy_n(births_.begin(), count, to);
  births_.erase(births_.begin(), births_.begin() + static_cast<std::ptrdiff_t>(count));
  return count;
}

std::uint64_t ObjectTable::lost() noexcept {
  const std::lock_guard lock(lock_);
  return lost_;
}

}  // namespace leadline::sanitizer
