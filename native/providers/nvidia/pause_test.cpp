// The program asks for a rest: what is measured, what is nowhere, and what a forked child does with a parent's timer.
#include <doctest/doctest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "gpu/recording.h"
#include "providers/nvidia/occupancy.h"
#include "providers/nvidia/provider.h"
#include "testing/nvidia/fakes.h"
#include "testing/test_monitor.h"

namespace leadline::testing {
namespace {

nvidia::Options quick() {
  nvidia::Options options;
  options.cupti_candidates = {std::string(LEADLINE_NVIDIA_FAKES) + "/libcupti.so.13"};
  options.flush_interval_s = 0.002;
  options.wait_at_stop_s = 0.1;
  return options;
}

void fresh(FakeGpu& gpu) {
  gpu.reset();
  TestMonitor::reset([] { return FakeGpu::instance().now_ns.load(); });
}

std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("a call that was told to begin is told to end, also in a rest; one that began in the rest is not") {
  Fakes fakes(LEADLINE_NVIDIA_FAKES);
  FakeGpu& gpu = fakes.gpu();
  fresh(gpu);
  const Region region("work");
  const auto told = [](leadline_phase phase) { return TestMonitor::api_events(phase).size(); };
  REQUIRE(nvidia::start(quick()).measuring);
  {
    const ApiScope over_the_pause(nvidia::cupti::Domain::kDriver, 17, "cuCtxSynchronize", nullptr, gpu.context());
    nvidia::pause();
  }
  CHECK(told(LEADLINE_BEGIN) == 1);
  CHECK(told(LEADLINE_END) == 1);
  {
    const ApiScope over_the_end(nvidia::cupti::Domain::kDriver, 17, "cuCtxSynchronize", nullptr, gpu.context());
    nvidia::resume();
    nvidia::resume();
  }
  CHECK(told(LEADLINE_BEGIN) == 1);
  CHECK(told(LEADLINE_END) == 1);
  fakes.device_synchronize();
  CHECK(told(LEADLINE_BEGIN) == 2);
  CHECK(told(LEADLINE_END) == 2);
  nvidia::stop();
}

TEST_CASE("a graph captured in a rest hangs below its launches; one that rests at its launch is nowhere") {
  Fakes fakes(LEADLINE_NVIDIA_FAKES);
  FakeGpu& gpu = fakes.gpu();
  fresh(gpu);
  nvidia::pause();  // before start: measuring begins with a rest
  REQUIRE(nvidia::start(quick()).measuring);
  FakeKernel kernel;
  void* graph = nullptr;
  void* exec = nullptr;
  const Region region("work");
  fakes.begin_capture(gpu.stream(7), 0);
  fakes.launch(&kernel, {1, 1, 1}, {32, 1, 1}, nullptr, 0, gpu.stream(7));
  fakes.end_capture(gpu.stream(7), &graph);
  fakes.graph_instantiate(&exec, graph, 0);
  fakes.graph_launch(exec, gpu.stream(7));
  nvidia::resume();
  fakes.graph_launch(exec, gpu.stream(7));
  nvidia::stop();
  CHECK(TestMonitor::folded({"gpu_time"}) ==
        "work;cudaGraphLaunch;kernel | device 0 stream 7 | gpu_time count 1 sum 1000\n");
  CHECK(TestMonitor::losses().empty());
}

TEST_CASE("a rest is in the recording, which folds to the same") {
  Fakes fakes(LEADLINE_NVIDIA_FAKES);
  FakeGpu& gpu = fakes.gpu();
  fresh(gpu);
  const std::string path = std::string(LEADLINE_NVIDIA_FAKES) + "/paused-recording.txt";
  nvidia::Options options = quick();
  options.recording = path;
  options.flush_interval_s = 3600;
  REQUIRE(nvidia::start(options).measuring);
  FakeKernel kernel;
  for (int i = 0; i < 6; ++i) {
    const Region region(i % 3 == 1 ? "rest" : "work");
    if (i % 3 == 1) nvidia::pause();
    fakes.launch(&kernel, {1, 1, 1}, {32, 1, 1}, nullptr, 0, gpu.stream(7));
    gpu.tick(5000);
    if (i % 3 == 1) nvidia::resume();
  }
  nvidia::stop();
  const std::string expected = text_of(path + ".folded");
  CHECK(expected.find("gpu_idle_time") != std::string::npos);
  CHECK(expected.find("rest") == std::string::npos);
  CHECK(gpu::replay(path, nvidia::kVendor).folded == expected);
}

TEST_CASE("regions timed by events of the driver: a forked child calls the driver no more, a rest leaves regions out") {
  Fakes fakes(LEADLINE_NVIDIA_FAKES);
  FakeGpu& gpu = fakes.gpu();
  fresh(gpu);
  gpu.holder = "another tool";
  gpu.context();
  REQUIRE(nvidia::start(quick()).timing_regions);
  {
    const Region timed("timed");
    nvidia::pause();
    const Region rest("rest");
  }
  nvidia::resume();
  { const Region again("again"); }
  const std::uint64_t of_parent = gpu.event_calls;
  CHECK(of_parent > 0);
  const pid_t child = fork();
  if (child == 0) {
    { const Region region("in the child"); }
    const bool silent = gpu.event_calls == of_parent;
    nvidia::leave_monitor();
    { const Region region("in the child"); }
    _exit(silent && gpu.event_calls == of_parent && TestMonitor::subscribers() == 0 ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  nvidia::stop();
  const std::string folded = TestMonitor::folded({"gpu_time"});
  CHECK(folded.find("again;default stream") != std::string::npos);
  CHECK(folded.find("rest") == std::string::npos);
  CHECK(folded.find("timed") == std::string::npos);
}

}  // namespace leadline::testing
