// Calls of ours into CUPTI and the driver, as far as they may wait.
//
// What the library does inside one is none of the program's calls: callbacks that it makes meanwhile on the same thread
// are not for us. For finding out which call does not come back: with LEADLINE_CUPTI_TRACE=FILE a line is written
// before and after each.
#pragma once

#include <chrono>
#include <cstdint>

namespace leadline::nvidia {

class OwnCall {
 public:
  OwnCall() noexcept { ++depth_; }
  ~OwnCall() { --depth_; }
  OwnCall(const OwnCall&) = delete;
  OwnCall& operator=(const OwnCall&) = delete;
  static bool is_open() noexcept { return depth_ > 0; }

 private:
  constinit __attribute__((tls_model("initial-exec"))) static inline thread_local std::uint32_t depth_ = 0;
};

// How long CUPTI may take to answer before it is given up: LEADLINE_CUPTI_LIMIT_MS, else five seconds, since the first
// call of all may load a library.
std::chrono::milliseconds answer_limit() noexcept;

// Nanoseconds of a clock that goes on whatever the profile's does.
inline std::int64_t waiting_clock() noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// -1: nobody asked.
int call_trace_file() noexcept;
void trace_call(int file, char direction, const char* name, int result) noexcept;

template <class Call, class... Args>
auto traced(const char* name, Call call, Args... args) {
  const OwnCall ours;
  const int file = call_trace_file();
  if (file < 0) return call(args...);
  trace_call(file, '>', name, 0);
  const auto result = call(args...);
  trace_call(file, '<', name, static_cast<int>(result));
  return result;
}

}  // namespace leadline::nvidia
