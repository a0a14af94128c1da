// A CUPTI that takes its time, does not answer at all, or does not bear to be called beside the program: what is lost
// is said, and the program goes on.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <string>
#include <thread>

#include "providers/nvidia/provider.h"
#include "testing/nvidia/fakes.h"
#include "testing/test_monitor.h"

namespace leadline::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// The variables of a test, as they were after it.
struct Switch {
  Switch(const char* name, const char* value) : name_(name) {
    if (const char* const before = ::getenv(name)) before_ = before;
    ::setenv(name, value, 1);
  }
  ~Switch() { before_ ? ::setenv(name_, before_->c_str(), 1) : ::unsetenv(name_); }
  Switch(const Switch&) = delete;
  Switch& operator=(const Switch&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

nvidia::Options quick() {
  nvidia::Options options;
  options.cupti_candidates = {std::string(LEADLINE_NVIDIA_FAKES) + "/libcupti.so.13"};
  options.flush_interval_s = 0.002;
  options.wait_at_stop_s = 0.1;
  options.instruction_budget = 1;
  options.sample_window_s = 0.005;
  return options;
}

void fresh_monitor() {
  TestMonitor::reset([] { return FakeGpu::instance().tick(0); });
}

// A call that was answered in the test before may still be on its way back; until then nothing is begun, which is said
// as a loss of that test and not of this one.
bool started(const nvidia::Options& options) {
  const auto until = steady_clock::now() + std::chrono::seconds(20);
  while (!nvidia::start(options).measuring) {
    nvidia::stop();
    fresh_monitor();
    if (steady_clock::now() > until) return false;
    std::this_thread::yield();
  }
  return true;
}

void fresh(FakeGpu& gpu) {
  gpu.reset();
  gpu.real_clock = true;
  fresh_monitor();
}

// Launches until `enough`, at most four seconds. Launches of 100 us, waited for, are what a program without overlap
// does.
template <class Enough>
std::uint64_t launch_until(Fakes& fakes, const Enough& enough, const char* name = "gemm") {
  FakeKernel kernel;
  kernel.name = name;
  kernel.duration_ns = 20'000;
  const auto until = steady_clock::now() + std::chrono::seconds(4);
  std::uint64_t launches = 0;
  while (!enough() && steady_clock::now() < until) {
    fakes.launch(&kernel, {1, 1, 1}, {32, 1, 1}, nullptr, 0, fakes.gpu().stream(7));
    fakes.device_synchronize();  // or the fake would hand over records of times to come
    ++launches;
  }
  return launches;
}

template <class Read>
auto locked(FakeGpu& gpu, const Read& read) {
  const std::lock_guard lock(gpu.mutex);
  return read();
}

}  // namespace

TEST_CASE("samples are begun and ended inside launches, never beside them, and not before the first ones are through") {
  const Switch after("LEADLINE_PC_AFTER", "50");
  Fakes fakes(LEADLINE_NVIDIA_FAKES);
  FakeGpu& gpu = fakes.gpu();
  fresh(gpu);
  gpu.sampling.pcs["gemm"].push_back({"gemm", 16, fake_stall_reason("wait"), 5, 0});
  nvidia::Options options = quick();
  options.instructions = "continuous";
  REQUIRE(started(options));
  FakeKernel kernel;
  kernel.name = "gemm";
  for (int i = 0; i < 49; ++i) fakes.launch(&kernel, {1, 1, 1}, {32, 1, 1}, nullptr, 0, gpu.stream(7));
  std::this_thread::sleep_for(milliseconds(20));  // windows might have opened
  CHECK(locked(gpu, [&] { return gpu.sampling.contexts.empty(); }));
  launch_until(fakes, [&] { return locked(gpu, [&] { return gpu.sampling.starts; }) >= 5; });
  fakes.device_synchronize();
  CHECK(nvidia::stop().message == "");
  CHECK(gpu.sampling.starts >= 5);
  CHECK(gpu.sampling.starts == gpu.sampling.stops);
  CHECK(gpu.sampling.calls_beside == 0);
  // One launch in each window, whose samples are then all its own.
  const std::string told = TestMonitor::folded({"instruction_samples"});
  const std::string sum = "sum " + std::to_string(5 * gpu.sampling.starts) + "\n";
  CHECK_MESSAGE(told.find(sum) != std::string::npos, told);
  CHECK(TestMonitor::losses() == std::map<std::string, std::uint64_t>{{"provider_unavailable", 1}});  // no copies
}

TEST_CASE("without records of kernels samples stand at the launch that they were taken of") {
  const Switch after("LEADLINE_PC_AFTER", "5");
  const Switch records("LEADLINE_PC_RECORDS", "none");
  Fakes fakes(LEADLINE_NVIDIA_FAKES);
  FakeGpu& gpu = fakes.gpu();
  fresh(gpu);
  gpu.sampling.pcs["gemm"].push_back({"gemm", 16, fake_stall_reason("wait"), 5, 0});
  nvidia::Options options = quick();
  options.instructions = "continuous";
  REQUIRE(started(options));
  launch_until(fakes, [&] { return locked(gpu, [&] { return gpu.sampling.starts; }) >= 5; });
  fakes.device_synchronize();
  CHECK(nvidia::stop().message == "");
  const auto said = nvidia::report().details;
  REQUIRE(said.has_value());
  const auto& details = said->instructions;
  REQUIRE(details.has_value());
  CHECK(details->samples.samples > 0);
  CHECK(details->samples.by_window == details->samples.samples);
  CHECK(details->samples.unattributed == 0);
  CHECK(!TestMonitor::losses().contains("gpu_work_unfinished"));
}

TEST_CASE("while a stream is captured nothing is sampled") {
  const Switch after("LEADLINE_PC_AFTER", "1");
  Fakes fakes(LEADLINE_NVIDIA_FAKES);
  FakeGpu& gpu = fakes.gpu();
  fresh(gpu);
  nvidia::Options options = quick();
  options.instructions = "continuous";
  REQUIRE(started(options));
  FakeKernel kernel;
  void* graph = nullptr;
  fakes.begin_capture(gpu.stream(9), 0);
  const auto until = steady_clock::now() + milliseconds(50);
  while (steady_clock::now() < until) fakes.launch(&kernel, {1, 1, 1}, {32, 1, 1}, nullptr, 0, gpu.stream(7));
  CHECK(locked(gpu, [&] { return gpu.sampling.starts; }) == 0);
  fakes.end_capture(gpu.stream(9), &graph);
  launch_until(fakes, [&] { return locked(gpu, [&] { return gpu.sampling.starts; }) > 0; });
  CHECK(gpu.sampling.starts > 0);
  nvidia::stop();
}

TEST_CASE("a program goes on where CUPTI does not answer when samples are begun") {
  const Switch after("LEADLINE_PC_AFTER", "1");
  const Switch place("LEADLINE_PC_PLACE", "helper");
  const Switch limit("LEADLINE_CUPTI_LIMIT_MS", "400");
  Fakes fakes(LEADLINE_NVIDIA_FAKES);
  FakeGpu& gpu = fakes.gpu();
  fresh(gpu);
  gpu.unanswered = "cuptiPCSamplingStart";
  nvidia::Options options = quick();
  options.instructions = "continuous";
  REQUIRE(started(options));
  const auto given_up = [] {
    return nvidia::report().details->instructions->message.find("did not answer") != std::string::npos;
  };
  launch_until(fakes, given_up);
  CHECK(given_up());
  int more = 0;
  launch_until(fakes, [&] { return ++more > 100; });
  CHECK(more > 100);
  const auto before = steady_clock::now();
  nvidia::stop();
  CHECK(steady_clock::now() - before < std::chrono::seconds(2));
  CHECK(gpu.waiting_calls.load() == 1);
  gpu.answer();
  while (gpu.waiting_calls > 0) std::this_thread::yield();
}

TEST_CASE("a program ends where CUPTI does not answer when it is asked for records, and nothing more is asked of it") {
  const Switch limit("LEADLINE_CUPTI_LIMIT_MS", "400");
  Fakes fakes(LEADLINE_NVIDIA_FAKES);
  FakeGpu& gpu = fakes.gpu();
  fresh(gpu);
  REQUIRE(started(quick()));
  int launches = 0;
  launch_until(fakes, [&] { return ++launches > 10; });
  locked(gpu, [&] { return gpu.unanswered = "cuptiActivityFlushAll"; });
  launch_until(fakes, [&] { return gpu.waiting_calls > 0; });
  const auto before = steady_clock::now();
  CHECK_FALSE(nvidia::flush(0.5));
  const nvidia::Status status = nvidia::stop();
  CHECK(steady_clock::now() - before < std::chrono::seconds(2));
  CHECK(TestMonitor::losses()["provider_unavailable"] == 1);
  CHECK(TestMonitor::loss_detail("provider_unavailable").find("did not answer") != std::string::npos);
  launches = 0;
  launch_until(fakes, [&] { return ++launches > 10; });
  CHECK(nvidia::start(quick()).measuring == false);
  CHECK(nvidia::stop().measuring == false);
  gpu.answer();
  while (gpu.waiting_calls > 0) std::this_thread::yield();
}

TEST_CASE("a program ends where CUPTI does not answer when counters are begun") {
  // enough for the calls that answer, also on an emulated processor
  const Switch limit("LEADLINE_CUPTI_LIMIT_MS", "1500");
  Fakes fakes(LEADLINE_NVIDIA_FAKES);
  FakeGpu& gpu = fakes.gpu();
  fresh(gpu);
  locked(gpu, [&] { return gpu.unanswered = "cuptiPmSamplingStart"; });
  nvidia::Options options = quick();
  options.gpu_metrics = {"dram"};
  REQUIRE(started(options));
  launch_until(fakes, [&] { return gpu.waiting_calls > 0; });
  CHECK(gpu.waiting_calls > 0);
  const auto before = steady_clock::now();
  nvidia::stop();
  CHECK(steady_clock::now() - before < std::chrono::seconds(5));
  CHECK(TestMonitor::loss_detail("provider_unavailable").find("did not answer") != std::string::npos);
  gpu.answer();
  while (gpu.waiting_calls > 0) std::this_thread::yield();
}

TEST_CASE("setting up counters takes none of a window's time, and costs the budget nothing") {
  Fakes fakes(LEADLINE_NVIDIA_FAKES);
  FakeGpu& gpu = fakes.gpu();
  fresh(gpu);
  locked(gpu, [&] {  // a measuring that was left behind may still be about to go
    gpu.costs["cuptiPmSamplingEnable"] = milliseconds(200);
    return gpu.counting.rates["gemm"].dram = 20;
  });
  nvidia::Options options = quick();
  options.gpu_metrics = {"dram"};
  options.counter_interval_ns = 1'000'000;
  options.instruction_budget = 0.5;
  REQUIRE(started(options));
  const auto begin = steady_clock::now();
  const auto counters = [] { return *nvidia::report().details->counters; };
  launch_until(fakes,
               [&] { return steady_clock::now() - begin > milliseconds(220) && counters().windows.windows >= 2; });
  nvidia::stop();
  const nvidia::CounterDetails told = *nvidia::report().details->counters;
  CHECK(told.windows.windows >= 2);
  CHECK(told.windows.spent_ns < 200'000'000);
  CHECK(told.samples.readings > 10);
  // Whether a kernel ran in any of them rests on when this thread has a core; gpu/counter_samples_test.cpp has that.
  CHECK(told.failed_rounds == 0);
}

TEST_CASE("a stretch of replayed kernels has its launches, however long CUPTI takes to set itself up") {
  Fakes fakes(LEADLINE_NVIDIA_FAKES);
  FakeGpu& gpu = fakes.gpu();
  fresh(gpu);
  gpu.costs["cuptiRangeProfilerEnable"] = milliseconds(200);
  gpu.costs["cuptiRangeProfilerStart"] = milliseconds(80);  // longer than a window
  nvidia::Options options = quick();
  options.gpu_metrics = {"dram"};
  options.replay = true;
  REQUIRE(started(options));
  const auto replay = [] { return *nvidia::report().details->replay; };
  launch_until(fakes, [&] { return replay().launches >= 64; });
  nvidia::stop();
  const nvidia::ReplayDetails told = *nvidia::report().details->replay;
  CHECK(told.stretches >= 2);
  CHECK(told.launches >= 32 * (told.stretches - 1));
}

TEST_CASE("launches of other threads do not wait for what CUPTI does in one of them") {
  const Switch after("LEADLINE_PC_AFTER", "1");
  Fakes fakes(LEADLINE_NVIDIA_FAKES);
  FakeGpu& gpu = fakes.gpu();
  for (const std::string call : {"cuptiRangeProfilerEnable", "cuptiRangeProfilerStart", "cuptiRangeProfilerStop",
                                 "cuptiPCSamplingEnable", "cuptiPCSamplingStart", "cuptiPCSamplingGetData"}) {
    CAPTURE(call);
    fresh(gpu);
    locked(gpu, [&] { return gpu.unanswered = call; });
    nvidia::Options options = quick();
    if (call.starts_with("cuptiRange")) {
      options.gpu_metrics = {"dram"};
      options.replay = true;
    } else {
      options.instructions = "continuous";
    }
    REQUIRE(started(options));
    std::thread one([&] { launch_until(fakes, [&] { return gpu.waiting_calls > 0; }); });
    const auto becomes = [](const auto& so) {
      const auto until = steady_clock::now() + std::chrono::seconds(60);  // it is never answered meanwhile
      while (!so() && steady_clock::now() < until) std::this_thread::yield();
      return so();
    };
    CHECK(becomes([&] { return gpu.waiting_calls == 1; }));
    std::atomic<bool> done{false};
    std::thread other([&] {
      int launches = 0;
      launch_until(fakes, [&] { return ++launches > 100; });
      done = true;
    });
    CHECK(becomes([&] { return done.load(); }));
    CHECK(gpu.waiting_calls == 1);
    gpu.answer();
    other.join();
    one.join();
    nvidia::stop();
  }
}

}  // namespace leadline::testing
