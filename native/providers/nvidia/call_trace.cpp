#include "providers/nvidia/call_trace.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>

namespace leadline::nvidia {

std::chrono::milliseconds answer_limit() noexcept {
  constexpr std::chrono::milliseconds kUsual{5000};
  const char* const text = std::getenv("LEADLINE_CUPTI_LIMIT_MS");
  const long given = text != nullptr ? std::strtol(text, nullptr, 10) : 0;
  return given > 0 ? std::chrono::milliseconds(given) : kUsual;
}

int call_trace_file() noexcept {
  static const int file = [] {
    const char* const path = std::getenv("LEADLINE_CUPTI_TRACE");
    return path != nullptr && *path != '\0' ? ::open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666) : -1;
  }();
  return file;
}

void trace_call(int file, char direction, const char* name, int result) noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  char line[160];
  const int length = std::snprintf(line, sizeof line, "%lld.%06ld tid %ld %c %s", static_cast<long long>(now.tv_sec),
                                   now.tv_nsec / 1000, ::syscall(SYS_gettid), direction, name);
  if (length <= 0) return;
  auto used = static_cast<std::size_t>(length) < sizeof line ? static_cast<std::size_t>(length) : sizeof line - 1;
  if (direction == '<') {
    const int more = std::snprintf(line + used, sizeof line - used, " %d", result);
    if (more > 0 && used + static_cast<std::size_t>(more) < sizeof line) used += static_cast<std::size_t>(more);
  }
  if (used < sizeof line) line[used++] = '\n';
  // One write, so that lines of several threads do not mix; what cannot be written is not missed.
  [[maybe_unused]] const ssize_t written = ::write(file, line, used);
}

}  // namespace leadline::nvidia
