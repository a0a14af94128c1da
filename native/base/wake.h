// Wakes one thread that waits for a time. Steps of the system's clock do not move the end of the wait, as they do with
// sem_timedwait. A signal handler may post.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace leadline {

class Wake {
 public:
  void clear() noexcept { posted_.store(0); }

  void post() noexcept {
    posted_.store(1);
    syscall(SYS_futex, &posted_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  }

  // Returns when the time is over, when this was posted since the last wait, and sometimes earlier.
  void wait(std::int64_t ns) noexcept {
    if (posted_.exchange(0) != 0 || ns <= 0) return;
    const timespec left{static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
    syscall(SYS_futex, &posted_, FUTEX_WAIT_PRIVATE, 0, &left, nullptr, 0);  // by CLOCK_MONOTONIC
    posted_.store(0);
  }

 private:
  std::atomic<std::uint32_t> posted_{0};
};
static_assert(sizeof(Wake) == sizeof(std::uint32_t) && std::atomic<std::uint32_t>::is_always_lock_free);

}  // namespace leadline
