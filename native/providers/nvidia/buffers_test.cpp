// Activity buffers and the clock of their records as CUPTI has them: one for each thread, kept for as long as CUPTI
// pleases, never refused where CUPTI does not bear it; and what a long pause switches off.
#include <doctest/doctest.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "gpu/buffer_pool.h"
#include "providers/nvidia/provider.h"
#include "testing/nvidia/fakes.h"
#include "testing/test_monitor.h"

namespace leadline::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

nvidia::Options quick(double flush_interval_s = 3600) {
  nvidia::Options options;
  options.cupti_candidates = {std::string(LEADLINE_NVIDIA_FAKES) + "/libcupti.so.13"};
  options.flush_interval_s = flush_interval_s;
  options.wait_at_stop_s = 0.05;
  return options;
}

void fresh(FakeGpu& gpu) {
  gpu.reset();
  gpu.delivery.per_thread = true;
  TestMonitor::reset([] { return FakeGpu::instance().now_ns.load(); });
}

void launch(Fakes& fakes, std::int64_t duration_ns = 1000) {
  FakeKernel kernel;
  kernel.duration_ns = duration_ns;
  fakes.launch(&kernel, {1, 1, 1}, {32, 1, 1}, nullptr, 0, fakes.gpu().stream(7));
}

// Looks until `is`, at most four seconds.
template <class Is>
bool soon(const Is& is) {
  const auto until = steady_clock::now() + std::chrono::seconds(4);
  while (!is()) {
    if (steady_clock::now() > until) return false;
    std::this_thread::sleep_for(milliseconds(2));
  }
  return true;
}

template <class Read>
auto locked(FakeGpu& gpu, const Read& read) {
  const std::lock_guard lock(gpu.mutex);
  return read();
}

}  // namespace

TEST_CASE("CUPTI may write to a buffer that it has kept after measuring has stopped") {
  Fakes fakes(LEADLINE_NVIDIA_FAKES);
  FakeGpu& gpu = fakes.gpu();
  fresh(gpu);
  gpu.cupti_version = 130300;  // shared, so that it is not finalised
  gpu.driver_cuda_version = 13030;
  gpu.buffers.kept = 1;
  for (int round = 0; round < 2; ++round) {
    REQUIRE(nvidia::start(quick()).measuring);
    REQUIRE(nvidia::report().details->subscription == "shared");
    const Region region("train");
    launch(fakes);
    nvidia::stop();
    gpu.buffers.write_to_kept();
  }
  CHECK(gpu.finalized == 0);
  CHECK(TestMonitor::losses()["gpu_work_unfinished"] == 1);  // what the buffer held is said to be missing
}

TEST_CASE("a request for a buffer is never answered with nothing where CUPTI ends the program for it") {
  Fakes fakes(LEADLINE_NVIDIA_FAKES);
  FakeGpu& gpu = fakes.gpu();
  fresh(gpu);
  gpu.cupti_version = 26;  // 12.8
  gpu.driver_cuda_version = 12080;
  gpu.buffers.most_records = 1;
  REQUIRE(nvidia::start(quick()).measuring);
  {
    const Region region("train");
    for (std::uint32_t i = 0; i < gpu::BufferPool::kMost + 10; ++i) launch(fakes, 1'000'000'000'000);
  }
  CHECK(gpu.buffers.refused == 0);
  nvidia::stop();
  CHECK(TestMonitor::losses()["gpu_buffer_exhausted"] == 10);
}

TEST_CASE("hundreds of threads that launch have a buffer each") {
  constexpr int kThreads = 150;
  Fakes fakes(LEADLINE_NVIDIA_FAKES);
  FakeGpu& gpu = fakes.gpu();
  fresh(gpu);
  REQUIRE(nvidia::start(quick()).measuring);
  std::mutex mutex;
  std::condition_variable all;
  int launched = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      {
        const Region region("serve");
        launch(fakes);
      }
      std::unique_lock lock(mutex);
      ++launched;
      all.notify_all();
      all.wait(lock, [&] { return launched == kThreads; });
    });
  }
  for (std::thread& thread : threads) thread.join();
  gpu.tick(1'000'000);
  CHECK(nvidia::flush(0));
  CHECK(nvidia::report().details->held_bytes < (64u << 20));
  nvidia::stop();
  CHECK(TestMonitor::losses().empty());
  CHECK(TestMonitor::folded({"gpu_time"}) ==
        "serve;cuLaunchKernel;kernel | device 0 stream 7 | gpu_time count 150 sum 150000\n");
}

TEST_CASE("buffers are filled with zeros beforehand, also those that come back") {
  Fakes fakes(LEADLINE_NVIDIA_FAKES);
  FakeGpu& gpu = fakes.gpu();
  fresh(gpu);
  gpu.buffers.most_records = 3;
  REQUIRE(nvidia::start(quick()).measuring);
  const Region region("train");
  for (int i = 0; i < 60; ++i) {
    launch(fakes);
    gpu.tick(2000);
    if (i % 10 == 0) nvidia::flush(0);
  }
  nvidia::stop();
  CHECK(gpu.buffers.wants_zeros);
  CHECK(gpu.buffers.dirty == 0);
}

TEST_CASE("while the program runs no thread of ours asks for records where CUPTI hands them over by itself") {
  Fakes fakes(LEADLINE_NVIDIA_FAKES);
  FakeGpu& gpu = fakes.gpu();
  fresh(gpu);
  gpu.flushes_by_itself = true;
  locked(gpu, [&] { return gpu.unanswered = "cuptiActivityFlushAll"; });  // who asks waits
  REQUIRE(nvidia::start(quick(0.002)).measuring);
  {
    const Region region("train");
    for (int i = 0; i < 10; ++i) launch(fakes);
  }
  gpu.tick(100'000);
  CHECK(soon([] { return nvidia::report().details->records >= 10; }));
  CHECK(gpu.waiting_calls == 0);
  gpu.answer();
  nvidia::stop();
  CHECK(gpu.flush_period_ms == 0);
  CHECK(TestMonitor::folded({"gpu_time"}) ==
        "train;cuLaunchKernel;kernel | device 0 stream 7 | gpu_time count 10 sum 10000\n");
}

TEST_CASE("a step of the system's clock moves no kernel") {
  Fakes fakes(LEADLINE_NVIDIA_FAKES);
  FakeGpu& gpu = fakes.gpu();
  const auto idle_with = [&](std::int64_t jump_ns) {
    fresh(gpu);
    REQUIRE(nvidia::start(quick()).measuring);
    const Region region("train");
    launch(fakes);
    gpu.tick(5000);
    gpu.clock_jump_ns = jump_ns;
    launch(fakes);
    gpu.tick(5000);
    nvidia::flush(0);
    nvidia::stop();
    return TestMonitor::folded({"gpu_idle_time"});
  };
  const std::string without = idle_with(0);
  CHECK(without.find("gpu_idle_time count 1") != std::string::npos);
  CHECK(idle_with(3'000'000'000) == without);
  CHECK(idle_with(-3'000'000'000) == without);
}

TEST_CASE("a long pause switches records and callbacks off, and what goes on after it is whole") {
  Fakes fakes(LEADLINE_NVIDIA_FAKES);
  FakeGpu& gpu = fakes.gpu();
  fresh(gpu);
  constexpr std::uint32_t kMalloc = 20, kSynchronize = 165, kLaunch = 211, kInstantiate = 443;
  const auto is_on = [&](std::uint32_t call) { return gpu.is_enabled(nvidia::cupti::Domain::kRuntime, call); };
  const auto records = [&] { return locked(gpu, [&] { return !gpu.kinds.empty(); }); };
  REQUIRE(nvidia::start(quick(0.002)).measuring);
  const auto kinds = locked(gpu, [&] { return gpu.kinds; });
  const auto callbacks = locked(gpu, [&] { return gpu.enabled; });
  {
    const Region before("before");
    launch(fakes);
    gpu.tick(5000);
  }
  {
    const Region open("open");
    std::optional<ApiScope> call;
    call.emplace(nvidia::cupti::Domain::kRuntime, kSynchronize, "cudaDeviceSynchronize", nullptr, gpu.context());
    nvidia::pause();
    std::this_thread::sleep_for(milliseconds(250));
    CHECK(is_on(kSynchronize));  // its end is still to be told
    call.reset();
  }
  CHECK(TestMonitor::api_events(LEADLINE_BEGIN).size() == TestMonitor::api_events(LEADLINE_END).size());
  REQUIRE(soon([&] { return !records() && !is_on(kLaunch); }));
  CHECK(is_on(kMalloc));
  CHECK(is_on(kInstantiate));
  {
    const Region during("during");
    std::optional<ApiScope> over_the_end;
    over_the_end.emplace(nvidia::cupti::Domain::kRuntime, kSynchronize, "cudaDeviceSynchronize", nullptr,
                         gpu.context());
    launch(fakes);
    nvidia::resume();
  }
  CHECK(locked(gpu, [&] { return gpu.kinds; }) == kinds);
  CHECK(locked(gpu, [&] { return gpu.enabled; }) == callbacks);
  {
    const Region after("after");
    launch(fakes);
    gpu.tick(5000);
  }
  nvidia::stop();
  CHECK(TestMonitor::folded({"gpu_time"}) ==
        "after;cuLaunchKernel;kernel | device 0 stream 7 | gpu_time count 1 sum 1000\n"
        "before;cuLaunchKernel;kernel | device 0 stream 7 | gpu_time count 1 sum 1000\n");
  CHECK(TestMonitor::losses().empty());
}

TEST_CASE("a short pause switches nothing") {
  Fakes fakes(LEADLINE_NVIDIA_FAKES);
  FakeGpu& gpu = fakes.gpu();
  fresh(gpu);
  REQUIRE(nvidia::start(quick(0.002)).measuring);
  const auto kinds = locked(gpu, [&] { return gpu.kinds; });
  for (int i = 0; i < 20; ++i) {
    nvidia::pause();
    std::this_thread::sleep_for(milliseconds(1));
    nvidia::resume();
    CHECK(locked(gpu, [&] { return gpu.kinds; }) == kinds);
  }
  nvidia::stop();
}

}  // namespace leadline::testing
