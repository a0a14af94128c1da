#include "base/device_table.h"

#include <mutex>
#include <new>
#include <utility>

#include "base/ids.h"

namespace leadline {

std::int16_t DeviceTable::row(std::int32_t index) noexcept {
  if (index < 0 || index >= kMaxDevices) return kCpuDevice;
  const std::int16_t known = row_plus_one_[static_cast<std::size_t>(index)].load(std::memory_order_acquire);
  if (known != 0) return static_cast<std::int16_t>(known - 1);
  try {
    const std::lock_guard guard(lock_);
    return row_locked(index);
  } catch (const std::bad_alloc&) {
    return kCpuDevice;
  }
}

std::int16_t DeviceTable::describe(DeviceDescription description) {
  if (description.index < 0 || description.index >= kMaxDevices) return kCpuDevice;
  const std::lock_guard guard(lock_);
  const std::int16_t row = row_locked(description.index);
  rows_[static_cast<std::size_t>(row)] = std::move(description);
  return row;
}

std::int16_t DeviceTable::row_locked(std::int32_t index) {
  std::atomic<std::int16_t>& known = row_plus_one_[static_cast<std::size_t>(index)];
  if (const std::int16_t row = known.load(std::memory_order_relaxed); row != 0) {
    return static_cast<std::int16_t>(row - 1);
  }
  DeviceDescription description;
  description.index = index;
  rows_.push_back(std::move(description));
  const auto row = static_cast<std::int16_t>(rows_.size());
  known.store(row, std::memory_order_release);
  return static_cast<std::int16_t>(row - 1);
}

std::vector<DeviceDescription> DeviceTable::rows() const {
  const std::lock_guard guard(lock_);
  return rows_;
}

void DeviceTable::clear() noexcept {
  lock_.reset();
  for (auto& row : row_plus_one_) row.store(0, std::memory_order_relaxed);
  rows_.clear();
}

}  // namespace leadline
