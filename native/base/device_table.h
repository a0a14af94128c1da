// The accelerators this process has seen: rows of the `devices` table, which `device` of a metric or event refers to.
//
// row() is lock-free and allocates nothing for a device already known; a new one, and describing one, take a short
// lock. As many devices as the `device` column of the tables can number, which is no limit that a machine reaches.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/chunked_array.h"
#include "base/ids.h"
#include "base/losses.h"
#include "base/spin_lock.h"

namespace leadline {

// Whose numbers a device number is of. Append only: leadline/monitor.h says the numbers, files say the names.
enum class DeviceType : std::uint8_t {
  kCpu = 0,
  kCuda = 1,
  kHip = 2,
  kOther = 3,  // and every number that is not here
  kXpu = 4,
  kMps = 5,
  kHpu = 6,
  kXla = 7,
  kMtia = 8,
};
inline constexpr std::array<std::string_view, 9> kDeviceTypeNames{"cpu", "cuda", "hip", "other", "xpu",
                                                                  "mps", "hpu",  "xla", "mtia"};

struct DeviceDescription {
  std::int32_t index = 0;  // the process's own number among devices of its type
  std::string name;
  std::string uuid;
  std::int64_t memory_bytes = 0;
  std::string detail;  // JSON object or empty
  DeviceType type = DeviceType::kCuda;
};

class DeviceTable {
 public:
  static constexpr std::int32_t kMost = std::numeric_limits<std::int16_t>::max();

  explicit DeviceTable(LossCounters& losses = leadline::losses()) noexcept : losses_(&losses) {}

  // Row of the device of this type with this index, made (without description) when new; kCpuDevice (-1) for the CPU
  // and an index that cannot be a device's (a loss from kMost on).
  std::int16_t row(DeviceType type, std::int32_t index) noexcept {
    return index < 0 || type == DeviceType::kCpu ? kCpuDevice : row_of_accelerator(type, index);
  }

  // Fills in what is known of a device; a later description replaces an earlier one. Returns its row.
  std::int16_t describe(DeviceDescription description);

  // All rows, in row order.
  std::vector<DeviceDescription> rows() const;

  // For a fork child: no other thread may use the table meanwhile.
  void clear() noexcept;

 private:
  std::int16_t row_of_accelerator(DeviceType type, std::int32_t index) noexcept;
  std::int16_t row_locked(DeviceType type, std::int32_t index);
  std::int16_t not_a_device() noexcept;
  static constexpr DeviceType known(DeviceType type) noexcept {
    return static_cast<std::size_t>(type) < kTypes ? type : DeviceType::kOther;
  }

  // By index; the row plus one, 0 while none is made. Grows to the largest index met.
  using RowOfIndex = ChunkedArray<std::atomic<std::int16_t>, 16>;
  static constexpr std::size_t kTypes = kDeviceTypeNames.size();
  using RowOfDevice = std::array<RowOfIndex, kTypes>;

  LossCounters* losses_;
  mutable SpinLock lock_;
  std::optional<RowOfDevice> row_plus_one_{std::in_place};  // always there; clear() puts a new one in its place
  std::vector<DeviceDescription> rows_;
};

}  // namespace leadline
