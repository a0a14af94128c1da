#include "base/device_table.h"

#include <mutex>
#include <new>
#include <utility>

#include "base/abandon.h"
#include "base/ids.h"

namespace leadline {

std::int16_t DeviceTable::row_of_accelerator(DeviceType type, std::int32_t index) noexcept {
  const auto kind = static_cast<std::size_t>(known(type));
  const auto number = static_cast<std::uint32_t>(index);
  if (number < (*row_plus_one_)[kind].size()) [[likely]] {
    const std::int16_t row = (*row_plus_one_)[kind][number].load(std::memory_order_acquire);
    if (row != 0) return static_cast<std::int16_t>(row - 1);
  }
  try {
    const std::lock_guard guard(lock_);
    return row_locked(known(type), index);
  } catch (const std::bad_alloc&) {
    return not_a_device();
  }
}

std::int16_t DeviceTable::describe(DeviceDescription description) {
  if (description.index < 0 || description.type == DeviceType::kCpu) return kCpuDevice;
  description.type = known(description.type);
  const std::lock_guard guard(lock_);
  const std::int16_t row = row_locked(description.type, description.index);
  if (row != kCpuDevice) rows_[static_cast<std::size_t>(row)] = std::move(description);
  return row;
}

std::int16_t DeviceTable::row_locked(DeviceType type, std::int32_t index) {
  const auto kind = static_cast<std::size_t>(type);
  if (index >= kMost || rows_.size() >= static_cast<std::size_t>(kMost)) return not_a_device();
  RowOfIndex& row_plus_one = (*row_plus_one_)[kind];
  const auto number = static_cast<std::uint32_t>(index);
  while (row_plus_one.size() <= number) {
    if (row_plus_one.emplace_back(std::int16_t{0}) == nullptr) return not_a_device();
  }
  std::atomic<std::int16_t>& plus_one = row_plus_one[number];
  if (const std::int16_t row = plus_one.load(std::memory_order_relaxed); row != 0) {
    return static_cast<std::int16_t>(row - 1);
  }
  DeviceDescription description;
  description.index = index;
  description.type = type;
  rows_.push_back(std::move(description));
  const auto row = static_cast<std::int16_t>(rows_.size());
  plus_one.store(row, std::memory_order_release);
  return static_cast<std::int16_t>(row - 1);
}

std::int16_t DeviceTable::not_a_device() noexcept {
  losses_->count(LossKind::kInternalError, 1,
                 "a device could not be numbered, so what it did is shown without a device; its number is out of "
                 "range or memory is short");
  return kCpuDevice;
}

std::vector<DeviceDescription> DeviceTable::rows() const {
  const std::lock_guard guard(lock_);
  return rows_;
}

void DeviceTable::clear() noexcept {
  lock_.reset();
  abandon(row_plus_one_, std::in_place);
  abandon(rows_);
}

}  // namespace leadline
