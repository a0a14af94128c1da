// The provider by roctracer, as where a ROCm has no SDK: the fake SDK is there too, and is kept from telling anything.
#include <doctest/doctest.h>

#include <array>

#include "providers/amd/measuring.h"
#include "providers/amd/roctracer.h"
#include "providers/amd/traced_graphs.h"
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
    const bool started = amd::Roctracer::instance().start(candidates, true, &why);
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

TEST_CASE("what a graph's launch makes stands below the places of its capture") {
  Traced traced;
  void* const stream = traced.fakes.rocm().stream(7);
  void* graph = nullptr;
  void* executable = nullptr;
  {
    const Region region("train");
    traced.fakes.begin_capture(stream, 0);
    {
      const Region forward("forward");
      traced.launch(Kernel{"relu", 700});
    }
    traced.launch(Kernel{"sum", 300});
    traced.fakes.end_capture(stream, &graph);
    traced.fakes.graph_instantiate(&executable, graph, nullptr, nullptr, 0);
    traced.fakes.graph_launch(executable, stream);
    traced.fakes.graph_launch(executable, stream);
  }
  traced.stop();
  const std::string folded = TestMonitor::folded({"gpu_time"});
  const std::string at = "train;hipGraphLaunch;captured at;train;";
  CHECK(folded == at + "forward;hipLaunchKernel;relu | device 0 stream 1 | gpu_time count 2 sum 1400\n" + at +
                      "hipLaunchKernel;sum | device 0 stream 1 | gpu_time count 2 sum 600\n");
  CHECK(TestMonitor::losses().empty());
}

TEST_CASE("replays that are not whole, or ran on several queues, tell no nodes") {
  std::vector<gpu::Work> told;
  const auto take = [&](const gpu::Work& work) { told.push_back(work); };
  const auto kernel = [](std::uint32_t launch, std::int64_t start, const char* name, std::uint64_t queue = 1) {
    gpu::Work work;
    work.correlation = launch;
    work.start_ns = start;
    work.name = name;
    work.queue = queue;
    return work;
  };
  amd::TracedGraphs graphs;
  graphs.add(kernel(5, 20, "second"), 3, 2, take);
  CHECK(told.empty());
  graphs.buffer_ended(take);
  graphs.add(kernel(5, 10, "first"), 3, 2, take);
  REQUIRE(told.size() == 2);
  CHECK(std::string(told[0].name) == "first");
  CHECK(told[0].graph_node == amd::Graphs::node(3, 0));
  CHECK(told[1].graph_node == amd::Graphs::node(3, 1));
  told.clear();
  graphs.add(kernel(6, 10, "first", 1), 3, 2, take);
  graphs.add(kernel(6, 11, "second", 2), 3, 2, take);  // beside each other: either may be the first of the capture
  REQUIRE(told.size() == 2);
  CHECK(told[0].graph_node == 0);
  told.clear();
  graphs.add(kernel(7, 10, "first"), 3, 2, take);
  graphs.buffer_ended(take);
  CHECK(told.empty());
  graphs.buffer_ended(take);
  REQUIRE(told.size() == 1);  // the other one was lost
  CHECK(told[0].graph_node == 0);
  graphs.add(kernel(8, 10, "first"), 3, 2, take);
  graphs.finish(take);
  CHECK(told.size() == 2);
  for (std::uint32_t i = 0; i < amd::TracedGraphs::kMostKept + 10; ++i) {
    graphs.add(kernel(100 + i, 10, "first"), 3, 2, take);  // none is ever whole
  }
  CHECK(told.size() == 12);  // memory is bounded
}

TEST_CASE("copies of roctracer say whether the host's memory was locked") {
  Traced traced;
  std::array<char, 64> plain{};
  void* locked = nullptr;
  {
    const Region region("train");
    traced.fakes.host_malloc(&locked, 4096, 0);
    traced.fakes.memcpy_async(nullptr, locked, 1000, 1, traced.fakes.rocm().stream(8));
    traced.fakes.memcpy_async(plain.data(), nullptr, 64, 2, traced.fakes.rocm().stream(8));
    traced.fakes.host_free(locked);
    traced.fakes.memcpy_async(nullptr, locked, 10, 1, traced.fakes.rocm().stream(8));
  }
  traced.stop();
  const std::string folded = TestMonitor::folded({"copy_bytes"});
  CAPTURE(folded);
  CHECK(folded.find("Memcpy HtoD (Pinned -> Device) | device 0 stream") != std::string::npos);
  // Measuring had ended before in this process, so others may be locked, too.
  CHECK(folded.find("Memcpy DtoH (Device -> Host)") != std::string::npos);
  CHECK(folded.find("Memcpy HtoD (Host -> Device)") != std::string::npos);
  CHECK(folded.find("copy_bytes count 1 sum 1000") != std::string::npos);
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
