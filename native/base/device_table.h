// The accelerators this process has seen: rows of the `devices` table, which `device` of a metric or event refers to.
//
// row() is lock-free for a device already known; describing one is a slow path with a short lock.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "base/spin_lock.h"

namespace leadline {

struct DeviceDescription {
  std::int32_t index = 0;  // the process's own device number
  std::string name;
  std::string uuid;
  std::int64_t memory_bytes = 0;
  std::string detail;  // JSON object or empty
};

class DeviceTable {
 public:
  static constexpr std::int32_t kMaxDevices = 128;

  // Row of the device with this index, made (without description) when new; kCpuDevice (-1) for an index out of range.
  std::int16_t row(std::int32_t index) noexcept;

  // Fills in what is known of a device; a later description replaces an earlier one. Returns its row.
  std::int16_t describe(DeviceDescription description);

  // All rows, in row order.
  std::vector<DeviceDescription> rows() const;

  // For a fork child: no other thread may use the table meanwhile.
  void clear() noexcept;

 private:
  std::int16_t row_locked(std::int32_t index);

  mutable SpinLock lock_;
  std::array<std::atomic<std::int16_t>, kMaxDevices> row_plus_one_{};
  std::vector<DeviceDescription> rows_;
};

}  // namespace leadline
