// Time of CLOCK_MONOTONIC in nanoseconds, from the processor's counter where that can be trusted.
//
// Promises: never goes backwards on a thread, never locks, stays within a microsecond of clock_gettime(CLOCK_MONOTONIC)
// (the counter is compared again at least once a second of use, and after any pause). The counter is used only where
// the kernel itself uses it; elsewhere now_ns() is clock_gettime.
#pragma once

#include <sys/types.h>
#include <time.h>

#include <atomic>
#include <cstdint>

#include "base/clock_line.h"

namespace leadline {

enum class ClockSource : std::uint8_t { kSystemCall, kCounter, kFake };

inline std::int64_t now_ns() noexcept {
  clock_line::Line line;
  while (!clock_line::line.load(line)) {
  }
  const std::uint64_t ticks = clock_line::read_counter();
  if (ticks - line.base_ticks < line.valid_ticks) [[likely]]
    return line.at(ticks);
  return clock_line::slow_now(line, ticks);
}

// CLOCK_REALTIME, for what is compared between processes and machines.
std::int64_t realtime_ns() noexcept;

// CPU time the calling thread has used.
std::int64_t thread_cpu_ns() noexcept;
// The same of another thread, by its clock; -1 where it has ended.
std::int64_t thread_cpu_ns(clockid_t clock) noexcept;

// The CPU clock of any thread of this process.
clockid_t cpu_clock_of(pid_t tid) noexcept;

ClockSource clock_source() noexcept;

// For tests: while one exists, now_ns() and thread_cpu_ns() return what it was told, in every thread. At most one at a
// time.
class FakeClock {
 public:
  explicit FakeClock(std::int64_t start_ns) noexcept;
  ~FakeClock();
  FakeClock(const FakeClock&) = delete;
  FakeClock& operator=(const FakeClock&) = delete;
  void set(std::int64_t now_ns) noexcept;
  void advance(std::int64_t by_ns) noexcept;      // nothing runs
  void advance_cpu(std::int64_t by_ns) noexcept;  // the CPU time of every thread; begins at 0
  // Every reading of a clock from now on moves both by as much, before it is read.
  void readings_take(std::int64_t ns) noexcept;
};

}  // namespace leadline
