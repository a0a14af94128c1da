// What a thread did from one border of a step to the next, read where a step ends.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "cct/step_table.h"

namespace leadline {

// What the collector counts of a thread (backward: of all threads), from any beginning.
enum class StepColumn : std::uint8_t {
  kOperators,
  kOperator,
  kBackward,
  kData,
  kOptimizer,
  kCompile,
  kCollection,
  kSaving,
  kDeviceWait,
  kColumns,
};

class StepValues {
 public:
  std::int64_t& operator[](StepColumn column) noexcept { return values_[static_cast<std::size_t>(column)]; }
  std::int64_t operator[](StepColumn column) const noexcept { return values_[static_cast<std::size_t>(column)]; }

 private:
  std::array<std::int64_t, static_cast<std::size_t>(StepColumn::kColumns)> values_{};
};

// Of the thread that crosses the borders of steps. Reads are three system calls, a few microseconds.
class StepCounters {
 public:
  StepCounters() noexcept = default;
  StepCounters(const StepCounters&) = delete;
  StepCounters& operator=(const StepCounters&) = delete;
  ~StepCounters() { close(); }

  // The thread itself, at a border now. Adds to `step` what was counted since the last border, which was at `last_ns`;
  // nothing where this thread did not cross that, or measuring paused since.
  void border(std::int64_t last_ns, std::int64_t now_ns, const StepValues& values, StepSums& step) noexcept;
  // The thread's number is another one now, as after a fork.
  void close() noexcept;

 private:
  struct Kernel {
    std::int64_t ran_ns = -1;
    std::int64_t waited_ns = -1;
    std::int64_t preemptions = -1;
    std::int64_t major_faults = -1;
  };
  std::int64_t core_wait_ns() noexcept;
  Kernel ask() noexcept;

  int file_ = kUnopened;
  std::int64_t at_ns_ = 0;
  Kernel kernel_;
  StepValues values_;
  static constexpr int kUnopened = -2;
};

}  // namespace leadline
