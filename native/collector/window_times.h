// When a process's trace window is open, in a file that its children map: they keep their events of the same time.
//
// Steps end in the training process only, so a loader's worker does not know them. It looks at the pages of the
// processes that it comes from; the nearest one that decides (it counts steps, or a clock) is followed.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>

namespace leadline {

inline constexpr std::int64_t kNotYet = std::numeric_limits<std::int64_t>::max();

// Lives in memory shared between processes, so it holds lock-free atomics and nothing else.
struct WindowTimes {
  std::atomic<std::int64_t> from_ns{kNotYet};   // CLOCK_MONOTONIC, which all processes of a machine share
  std::atomic<std::int64_t> until_ns{kNotYet};  // kNotYet while the window is open
  std::atomic<std::uint32_t> decides{0};        // 1 once this process has opened, closed or passed over a step

  bool covers(std::int64_t time_ns) const noexcept {
    return time_ns >= from_ns.load(std::memory_order_relaxed) && time_ns < until_ns.load(std::memory_order_relaxed);
  }
  bool is_open() const noexcept {
    return from_ns.load(std::memory_order_relaxed) != kNotYet && until_ns.load(std::memory_order_relaxed) == kNotYet;
  }
};
static_assert(std::atomic<std::int64_t>::is_always_lock_free && std::atomic<std::uint32_t>::is_always_lock_free);

using SharedTimes = std::shared_ptr<WindowTimes>;

// A new file with the times of a window that has not opened. Null where the file system refuses it.
SharedTimes publish_times(const std::string& path) noexcept;

// The times that another process has published. Null where there are none.
SharedTimes published_times(const std::string& path) noexcept;

}  // namespace leadline
