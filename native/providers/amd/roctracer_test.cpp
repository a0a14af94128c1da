// The provider by roctracer, as where a ROCm has no SDK: the fake SDK is there too, and is kept from telling anything.
#include <doctest/doctest.h>

#include "providers/amd/measuring.h"
#include "providers/amd/roctracer.h"
#include "testing/amd/fakes.h"
#include "testing/test_monitor.h"

namespace leadline::testing {
namespace {

using rocm::FakeRocm;
using rocm::Fakes;
using rocm::Kernel;

struct Traced {
  Traced() : fakes(LEADLINE_AMD_FAKES) {
    FakeRocm& rocm = fakes.rocm();
    rocm.reset();
    rocm.active = false;
    TestMonitor::reset([] { return FakeRocm::instance().now_ns.load(); });
    std::string why;
    const std::vector<std::string> candidates{std::string(LEADLINE_AMD_FAKES) + "/libroctracer64.so.4"};
    const bool started = amd::Roctracer::instance().start(candidates, &why);
    CHECK(why == "");
    REQUIRE(started);
    amd::Options options;
    options.flush_interval_s = 3600;
    options.wait_at_stop_s = 0.05;
    measuring = std::make_unique<amd::Measuring>(options, amd::Roctracer::instance());
    REQUIRE(measuring->start(&why, false));
  }
  ~Traced() {
    stop();
    fakes.rocm().active = true;
  }
  void stop() {
    if (measuring) measuring->stop();
    measuring.reset();
  }
  void launch(const Kernel& kernel, std::uint32_t stream = 7) {
    fakes.launch(&kernel, {1, 1, 1}, {32, 1, 1}, nullptr, 0, fakes.rocm().stream(stream));
  }

  Fakes fakes;
  std::unique_ptr<amd::Measuring> measuring;
};

}  // namespace

TEST_CASE("roctracer's kernels and copies stand below their calls, on streams numbered by first use") {
  Traced traced;
  {
    const Region region("train");
    traced.launch(Kernel{"_Z4gemmPf", 5000});
    traced.fakes.memcpy_async(nullptr, nullptr, 4096, 2, traced.fakes.rocm().stream(8));
    traced.fakes.device_synchronize();
  }
  CHECK(traced.measuring->details().launches == 1);
  traced.stop();
  const std::string folded = TestMonitor::folded({"gpu_time", "copy_bytes"});
  const std::string kernel = "train;hipLaunchKernel;gemm(float*) | device 0 stream 1 | gpu_time count 1 sum 5000\n";
  const std::string copy =
      "train;hipMemcpyAsync;Memcpy DtoH (Device -> Host) | device 0 stream 2 | copy_bytes count 1 sum 4096\n";
  CAPTURE(folded);
  CHECK(folded.find(kernel) != std::string::npos);
  CHECK(folded.find(copy) != std::string::npos);
  CHECK(TestMonitor::losses().empty());
}

TEST_CASE("a captured launch makes no work, and what a graph's launch makes stands below that") {
  Traced traced;
  void* const stream = traced.fakes.rocm().stream(7);
  void* graph = nullptr;
  void* executable = nullptr;
  {
    const Region region("train");
    traced.fakes.begin_capture(stream, 0);
    traced.launch(Kernel{"relu", 700});
    traced.fakes.end_capture(stream, &graph);
    traced.fakes.graph_instantiate(&executable, graph, nullptr, nullptr, 0);
    traced.fakes.graph_launch(executable, stream);
  }
  traced.stop();
  const std::string folded = TestMonitor::folded({"gpu_time"});
  CHECK(folded == "train;hipGraphLaunch;relu | device 0 stream 1 | gpu_time count 1 sum 700\n");
  CHECK(TestMonitor::losses().empty());
}

TEST_CASE("roctracer is left alone when nothing is measured, and serves again") {
  for (int round = 0; round < 2; ++round) {
    Traced traced;
    CHECK(!traced.fakes.rocm().traced_calls.empty());
    traced.launch(Kernel{});
    traced.stop();
    CHECK(traced.fakes.rocm().traced_calls.empty());
    CHECK(traced.fakes.rocm().traced_work.empty());
    CHECK(TestMonitor::folded({"gpu_time"}).find("gpu_time count 1 sum 1000") != std::string::npos);
  }
}

TEST_CASE("ranges of the older roctx are regions") {
  Traced traced;
  void* const older = ::dlopen((std::string(LEADLINE_AMD_FAKES) + "/libroctx64.so.4").c_str(), RTLD_NOW);
  REQUIRE(older != nullptr);
  traced.stop();
  Traced again;  // which finds the library loaded
  const auto push = reinterpret_cast<int (*)(const char*)>(::dlsym(older, "roctxRangePushA"));
  const auto pop = reinterpret_cast<int (*)()>(::dlsym(older, "roctxRangePop"));
  push("step");
  again.launch(Kernel{});
  pop();
  again.stop();
  CHECK(TestMonitor::folded({"gpu_time"}).find("step;hipLaunchKernel;kernel | device 0 stream 1") == 0);
  CHECK(!FakeRocm::instance().older_roctx);
}

}  // namespace leadline::testing
