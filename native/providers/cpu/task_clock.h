// What interrupts a thread on time: a counter of the kernel's that follows the CPU clock of the thread while it runs.
//
// A timer on that clock goes off at a tick of the kernel at which the thread runs: where there are more threads than
// cores it comes late, and it never comes more often than the tick. The counter needs the right to count; it is blind
// in the kernel, so that no system call is ever interrupted, and the timer stays beside it for what a thread does
// there.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "providers/cpu/perf_file.h"

namespace leadline::cpu {

class TaskClock {
 public:
  // The thread gets `signal` whenever it has run so long. False where the kernel refuses, or where the program's files
  // would become few.
  bool open(pid_t tid, int64_t interval_ns, int signal) noexcept;
  // No signal is sent any more; one may be on its way.
  void close() noexcept;
  // Whether the program has not closed its file.
  bool is_open() const noexcept { return file_.is_ours(); }
  // In the child of a fork, where the file is still the parent's.
  void forget() noexcept { file_.close(); }

 private:
  PerfFile file_;
};

}  // namespace leadline::cpu
