#include "providers/cpu/waits.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "base/clock.h"

namespace leadline::cpu {

bool Waits::available() noexcept {
  InKernel now;
  return read_in_kernel(static_cast<pid_t>(syscall(SYS_gettid)), &now);
}

void Waits::begin(SampledThread& thread) noexcept {
  SampledWait& wait = thread.wait;
  wait = {};
  wait.looked_ns = now_ns();
  wait.ran_ns = thread_cpu_ns(thread.clock);
  wait.for_core_ns = waited_for_core_ns(thread.tid.load(std::memory_order_relaxed));
}

void Waits::look(SampledThread& thread) noexcept {
  SampledWait& wait = thread.wait;
  const int64_t now = now_ns();
  const int64_t ran_ns = thread_cpu_ns(thread.clock);
  if (ran_ns < 0) return;
  const int64_t passed_ns = now - wait.looked_ns;
  wait.looked_ns = now;
  if (ran_ns == wait.ran_ns && wait.place != 0) {  // it has not run since: the same wait
    wait.here_ns += passed_ns;
    return;
  }
  const int64_t for_core_ns = waited_for_core_ns(thread.tid.load(std::memory_order_relaxed));
  const int64_t in_line_ns = std::max<int64_t>(for_core_ns < 0 ? 0 : for_core_ns - wait.for_core_ns, 0);
  const int64_t blocked_ns = passed_ns - (ran_ns - wait.ran_ns) - in_line_ns;
  wait.ran_ns = ran_ns;
  wait.for_core_ns = for_core_ns;
  // The kernel tells of time in line when it is over, so some of it was taken for the wait before.
  wait.here_ns += std::min<int64_t>(blocked_ns, 0);
  if (wait.place != 0) booker_.book_wait(wait.place, wait.here_ns);
  wait.here_ns = std::min<int64_t>(wait.here_ns, 0);  // a debt stays
  wait.unseen_ns += std::max<int64_t>(blocked_ns, 0);
  wait.place = 0;
  Wait what = Wait::kRunning;
  leadline_context at = thread.last != 0 ? thread.last : thread.root;
  const leadline_context seen = booker_.waiting_at(thread, &what);
  if (seen != 0) at = seen;
  if (in_line_ns > 0) booker_.book_wait(booker_.wait_place(at, Wait::kCore), in_line_ns);
  if (what == Wait::kRunning) return;
  wait.place = wait.last = booker_.wait_place(at, what);
  wait.here_ns += wait.unseen_ns;
  wait.unseen_ns = 0;
}

void Waits::rest(SampledThread& thread) noexcept {
  SampledWait& wait = thread.wait;
  if (wait.looked_ns == 0) return;
  if (wait.place != 0) booker_.book_wait(wait.place, wait.here_ns);
  if (wait.unseen_ns > 0) {
    const leadline_context at = thread.last != 0 ? thread.last : thread.root;
    // Most likely more of what it has waited for before.
    booker_.book_wait(wait.last != 0 ? wait.last : booker_.wait_place(at, Wait::kOther), wait.unseen_ns);
  }
  wait = {};
}

}  // namespace leadline::cpu
