// The fake roctx: ranges go to the tool as those of rocprofiler-sdk's own roctx library do.
#include "testing/amd/fake_rocm.h"

using namespace leadline::testing::rocm;  // NOLINT: one file, exported C names only

namespace {
thread_local int depth = 0;
std::atomic<std::uint64_t> started{0};

void tell(std::int32_t operation, sdk::MarkerCall call, std::uint64_t result = 0) {
  call.size = sizeof call;
  FakeRocm& rocm = FakeRocm::instance();
  rocm.tell(rocm.kind_marker(), operation, sdk::Phase::kEnter, &call);
  call.result = result;
  rocm.tell(rocm.kind_marker(), operation, sdk::Phase::kExit, &call);
}
sdk::MarkerCall with(const char* message) {
  sdk::MarkerCall call{};
  call.message = message;
  return call;
}
}  // namespace

extern "C" {
void roctxMarkA(const char* message) { tell(0, with(message)); }
int roctxRangePushA(const char* message) {
  tell(1, with(message));
  return depth++;
}
int roctxRangePop() {
  tell(2, with(nullptr));
  return --depth;
}
std::uint64_t roctxRangeStartA(const char* message) {
  const std::uint64_t number = ++started;
  tell(3, with(message), number);
  return number;
}
void roctxRangeStop(std::uint64_t number) {
  sdk::MarkerCall call{};
  call.range = number;
  tell(4, call);
}
}  // extern "C"
