// What CUPTI is asked for: as little as the run needs, and every launch once.
#include <doctest/doctest.h>

#include <chrono>
#include <thread>

#include "providers/nvidia/provider.h"
#include "testing/nvidia/fakes.h"
#include "testing/test_monitor.h"

namespace leadline::testing {
namespace {

using nvidia::cupti::Kind;

nvidia::Options quick(bool traces) {
  nvidia::Options options;
  options.cupti_candidates = {std::string(LEADLINE_NVIDIA_FAKES) + "/libcupti.so.13"};
  options.flush_interval_s = 0.002;
  options.wait_at_stop_s = 0.1;
  options.traces = traces;
  return options;
}

class Run {
 public:
  explicit Run(bool tells_inner_calls = true) : gpu_(fakes_.gpu()) {
    gpu_.reset();
    gpu_.tells_inner_calls = tells_inner_calls;
    TestMonitor::reset([] { return FakeGpu::instance().now_ns.load(); });
    kernel_.duration_ns = 50'000;
  }
  void launch() { fakes_.launch(&kernel_, {1, 1, 1}, {32, 1, 1}, nullptr, 0, gpu_.stream(7)); }
  void launch_by_driver() { fakes_.cu_launch(&kernel_, 1, 1, 1, 32, 1, 1, 0, gpu_.stream(7), nullptr, nullptr); }
  template <class Call>
  std::uint64_t callbacks_of(const Call& call) {
    const std::uint64_t before = gpu_.callbacks_told;
    call();
    return gpu_.callbacks_told - before;
  }
  bool records(Kind kind) {
    const std::lock_guard lock(gpu_.mutex);
    return gpu_.kinds.contains(kind);
  }
  Fakes& fakes() { return fakes_; }
  FakeGpu& gpu() { return gpu_; }

 private:
  Fakes fakes_{LEADLINE_NVIDIA_FAKES};
  FakeGpu& gpu_;
  FakeKernel kernel_;
};

}  // namespace

TEST_CASE("a launch costs two callbacks, whichever API makes it; what only a timeline shows costs none without one") {
  for (const bool traces : {false, true}) {
    CAPTURE(traces);
    Run run;
    REQUIRE(nvidia::start(quick(traces)).measuring);
    const Region region("train");
    CHECK(run.callbacks_of([&] { run.launch(); }) == 2);
    CHECK(run.callbacks_of([&] { run.launch_by_driver(); }) == 2);
    FakeEvent* const event = run.gpu().event(1);
    const std::uint64_t of_events = run.callbacks_of([&] {
      run.fakes().event_record(event, run.gpu().stream(7));
      run.fakes().stream_wait_event(run.gpu().stream(8), event, 0);
    });
    CHECK(of_events == (traces ? 8 : 0));
    CHECK(run.records(Kind::kConcurrentKernel));
    CHECK(run.records(Kind::kMemcpy));
    CHECK(run.records(Kind::kSynchronization) == traces);
    CHECK(run.records(Kind::kOverhead) == traces);
    run.fakes().device_synchronize();
    nvidia::stop();
    CHECK(TestMonitor::folded({"gpu_time"}) ==
          "train;cuLaunchKernel;kernel | device 0 stream 7 | gpu_time count 2 sum 100000\n");
    // Waits are timed either way, by their records or by their calls.
    CHECK(TestMonitor::folded({"sync_time"}).starts_with("train;cudaDeviceSynchronize | "));
  }
}

TEST_CASE("a CUPTI that tells of no driver call inside a runtime call: few launches are missed, and that is said") {
  Run run(false);
  REQUIRE(nvidia::start(quick(false)).measuring);
  const Region region("train");
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  // As long as it takes to find out; and then all are seen.
  while (run.callbacks_of([&] { run.launch(); }) == 0) {
    REQUIRE(std::chrono::steady_clock::now() < until);
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  for (int i = 0; i < 9; ++i) CHECK(run.callbacks_of([&] { run.launch(); }) == 2);
  nvidia::stop();
  CHECK(TestMonitor::folded({"gpu_time"})
            .find("train;cudaLaunchKernel;kernel | device 0 stream 7 | gpu_time count 10 ") != std::string::npos);
  CHECK(TestMonitor::losses()["provider_unavailable"] == 1);
  CHECK(TestMonitor::losses()["gpu_record_unattributed"] >= 64);
}

}  // namespace leadline::testing
