// The fake roctx: ranges go to the tool as those of rocprofiler-sdk's own roctx library do.
#include "testing/amd/fake_rocm.h"

using namespace leadline::testing::rocm;  // NOLINT: one file, exported C names only

namespace {
thread_local int depth = 0;
int tell(std::int32_t operation, const char* message) {
  struct {
    std::uint64_t size = 24;
    const char* message = nullptr;
    std::uint64_t result = 0;
  } call;
  call.message = message;
  FakeRocm& rocm = FakeRocm::instance();
  rocm.tell(rocm.kind_marker(), operation, leadline::amd::sdk::Phase::kEnter, &call);
  rocm.tell(rocm.kind_marker(), operation, leadline::amd::sdk::Phase::kExit, &call);
  return depth;
}
}  // namespace

extern "C" {
void roctxMarkA(const char* message) { tell(0, message); }
int roctxRangePushA(const char* message) {
  tell(1, message);
  return depth++;
}
int roctxRangePop() {
  tell(2, nullptr);
  return --depth;
}
}  // extern "C"
