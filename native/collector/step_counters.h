// What a thread has run and has waited for a core, read where a step ends.
#pragma once

#include <cstdint>

namespace leadline {

// Of the thread that crosses the borders of steps. Reads are two system calls, a few microseconds.
class StepCounters {
 public:
  StepCounters() noexcept = default;
  StepCounters(const StepCounters&) = delete;
  StepCounters& operator=(const StepCounters&) = delete;
  ~StepCounters() { close(); }

  struct Since {
    int64_t running_ns = -1;  // -1: not known
    int64_t core_wait_ns = -1;
  };
  // What was added since the last border, which was at `last_ns`; the thread itself, at a border now.
  Since border(int64_t last_ns, int64_t now_ns) noexcept;
  // The thread's number is another one now, as after a fork.
  void close() noexcept;

 private:
  int64_t core_wait_ns() noexcept;

  int file_ = kUnopened;
  int64_t at_ns_ = 0;
  int64_t ran_ns_ = -1;
  int64_t waited_ns_ = -1;
  static constexpr int kUnopened = -2;
};

}  // namespace leadline
