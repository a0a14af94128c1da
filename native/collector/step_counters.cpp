#include "collector/step_counters.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>

#include "base/clock.h"

namespace leadline {

StepCounters::Since StepCounters::border(int64_t last_ns, int64_t now_ns) noexcept {
  const int64_t ran_ns = thread_cpu_ns();
  const int64_t waited_ns = core_wait_ns();
  Since since;
  if (at_ns_ == last_ns && last_ns != 0) {
    if (ran_ns_ >= 0 && ran_ns >= ran_ns_) since.running_ns = ran_ns - ran_ns_;
    if (waited_ns_ >= 0 && waited_ns >= waited_ns_) since.core_wait_ns = waited_ns - waited_ns_;
  }
  at_ns_ = now_ns;
  ran_ns_ = ran_ns;
  waited_ns_ = waited_ns;
  return since;
}

void StepCounters::close() noexcept {
  if (file_ >= 0) ::close(file_);
  file_ = kUnopened;
  at_ns_ = 0;
}

// The second number of schedstat: nanoseconds on the run queue of a core.
int64_t StepCounters::core_wait_ns() noexcept {
  if (file_ == kUnopened) file_ = ::open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
  if (file_ < 0) return -1;
  std::array<char, 96> text{};
  const ssize_t size = ::pread(file_, text.data(), text.size() - 1, 0);
  if (size <= 0) return -1;
  const char* at = text.data();
  while (*at != '\0' && *at != ' ') ++at;
  if (*at != ' ') return -1;
  ++at;
  int64_t waited_ns = 0;
  bool digits = false;
  for (; *at >= '0' && *at <= '9'; ++at, digits = true) waited_ns = waited_ns * 10 + (*at - '0');
  return digits ? waited_ns : -1;
}

}  // namespace leadline
