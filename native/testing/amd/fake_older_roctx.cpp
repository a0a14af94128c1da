// The fake roctx of before rocprofiler-sdk: ranges go to who has registered last, and the SDK does not see them.
#include "testing/amd/fake_rocm.h"

using namespace leadline::testing::rocm;  // NOLINT: one file, exported C names only

namespace {
thread_local int depth = 0;
std::atomic<std::uint64_t> started{0};

void report(tracer::RoctxOperation operation, const char* message, std::uint64_t range = 0) {
  tracer::RoctxCall call{message, range};
  if (const tracer::RoctxCallback told = FakeRocm::instance().older_roctx)
    told(static_cast<std::uint32_t>(tracer::Domain::kRoctx), static_cast<std::uint32_t>(operation), &call);
}
}  // namespace

extern "C" {
void roctxRegisterTracerCallback(tracer::RoctxCallback callback) { FakeRocm::instance().older_roctx = callback; }
void roctxMarkA(const char* message) { report(tracer::RoctxOperation::kMark, message); }
int roctxRangePushA(const char* message) {
  report(tracer::RoctxOperation::kPush, message);
  return depth++;
}
int roctxRangePop() {
  report(tracer::RoctxOperation::kPop, nullptr);
  return --depth;
}
std::uint64_t roctxRangeStartA(const char* message) {
  const std::uint64_t number = ++started;
  report(tracer::RoctxOperation::kStart, message, number);
  return number;
}
void roctxRangeStop(std::uint64_t number) { report(tracer::RoctxOperation::kStop, nullptr, number); }
}  // extern "C"
