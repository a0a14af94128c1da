#include "collector/step_counters.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/clock.h"

namespace leadline {

void StepCounters::border(std::int64_t last_ns, std::int64_t now_ns, const StepValues& values,
                          StepSums& step) noexcept {
  const Kernel kernel = ask();
  if (at_ns_ == last_ns && last_ns != 0) {
    const auto since = [&](std::int64_t Kernel::*what) {
      return kernel_.*what >= 0 && kernel.*what >= kernel_.*what ? kernel.*what - kernel_.*what : std::int64_t{-1};
    };
    const auto of = [&](StepColumn column) { return values[column] - values_[column]; };
    step.counted = 1;
    // The kernel is asked a little after the border: no more of it than the step is long.
    step.running_ns = std::min(since(&Kernel::ran_ns), step.wall_ns);
    step.core_wait_ns = std::min(since(&Kernel::waited_ns), step.wall_ns - std::max<std::int64_t>(step.running_ns, 0));
    step.preemptions = since(&Kernel::preemptions);
    step.major_faults = since(&Kernel::major_faults);
    step.operators = of(StepColumn::kOperators);
    step.operator_ns = of(StepColumn::kOperator);
    step.backward_ns = of(StepColumn::kBackward);
    step.data_ns = of(StepColumn::kData);
    step.optimizer_ns = of(StepColumn::kOptimizer);
    step.compile_ns = of(StepColumn::kCompile);
    step.collection_ns = of(StepColumn::kCollection);
    step.saving_ns = of(StepColumn::kSaving);
    step.device_wait_ns = of(StepColumn::kDeviceWait);
  }
  at_ns_ = now_ns;
  kernel_ = kernel;
  values_ = values;
}

StepCounters::Kernel StepCounters::ask() noexcept {
  Kernel kernel;
  kernel.ran_ns = thread_cpu_ns();
  kernel.waited_ns = core_wait_ns();
  rusage usage{};
  if (getrusage(RUSAGE_THREAD, &usage) == 0) {
    kernel.preemptions = usage.ru_nivcsw;
    kernel.major_faults = usage.ru_majflt;
  }
  return kernel;
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
