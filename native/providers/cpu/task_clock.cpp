#include "providers/cpu/task_clock.h"

#include <fcntl.h>
#include <sys/resource.h>

namespace leadline::cpu {
namespace {

// Numbers of files are few, and some programs end when they run out.
bool leaves_enough(int number) noexcept {
  rlimit files{};
  return getrlimit(RLIMIT_NOFILE, &files) == 0 && static_cast<rlim_t>(number) < files.rlim_cur / 2;
}

bool interrupts(int file, pid_t tid, int signal) noexcept {
  f_owner_ex owner{};
  owner.type = F_OWNER_TID;
  owner.pid = tid;
  return fcntl(file, F_SETSIG, signal) == 0 && fcntl(file, F_SETOWN_EX, &owner) == 0 &&
         fcntl(file, F_SETFL, O_ASYNC | O_NONBLOCK) == 0 && ioctl(file, PERF_EVENT_IOC_ENABLE, 0) == 0;
}

}  // namespace

bool TaskClock::open(pid_t tid, int64_t interval_ns, int signal) noexcept {
  close();
  perf_event_attr wanted{};
  wanted.size = sizeof wanted;
  wanted.type = PERF_TYPE_SOFTWARE;
  wanted.config = PERF_COUNT_SW_TASK_CLOCK;
  wanted.sample_period = static_cast<uint64_t>(interval_ns);
  wanted.wakeup_events = 1;
  wanted.exclude_kernel = 1;
  wanted.exclude_hv = 1;
  wanted.disabled = 1;
  if (!file_.open(wanted, tid)) return false;
  if (leaves_enough(file_.number()) && interrupts(file_.number(), tid, signal)) return true;
  close();
  return false;
}

void TaskClock::close() noexcept {
  if (file_.is_ours()) ioctl(file_.number(), PERF_EVENT_IOC_DISABLE, 0);
  file_.close();
}

}  // namespace leadline::cpu
