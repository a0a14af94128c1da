// The provider as a whole: teardown while threads launch, the same recording twice, forks, and many records in little
// memory.
#include <doctest/doctest.h>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/clock.h"
#include "gpu/activity_fold.h"
#include "gpu/recording.h"
#include "providers/nvidia/occupancy.h"
#include "providers/nvidia/provider.h"
#include "testing/nvidia/fakes.h"
#include "testing/own_threads.h"
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

long resident_kib() {
  long pages = 0;
  long resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

}  // namespace

TEST_CASE("starting and stopping while threads launch: nothing hangs, nothing is called after the end") {
  Fakes fakes(LEADLINE_NVIDIA_FAKES);
  FakeGpu& gpu = fakes.gpu();
  fresh(gpu);
  std::atomic<bool> over{false};
  std::atomic<std::uint64_t> launched{0};
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      FakeKernel kernel;
      kernel.duration_ns = 10;
      FakeStream* stream = gpu.stream(t + 10);
      const Region region("work");
      while (!over.load(std::memory_order_relaxed)) {
        fakes.launch(&kernel, {1, 1, 1}, {32, 1, 1}, nullptr, 0, stream);
        launched.fetch_add(1, std::memory_order_relaxed);
        // The fake has one lock; without a break nobody else would come to it, and millions of launches would wait.
        std::this_thread::sleep_for(std::chrono::microseconds(20));
      }
    });
  }
  for (int round = 0; round < 5; ++round) {
    REQUIRE(nvidia::start(quick()).measuring);
    const std::uint64_t before = launched.load();
    while (launched.load() < before + 200) std::this_thread::yield();
    CHECK(nvidia::stop().message == "");
    CHECK_FALSE(nvidia::is_measuring());
    CHECK(gpu.finalized == 1);
    CHECK(gpu.finalized_inside_call);
    const std::uint64_t activities = TestMonitor::activities();
    const std::uint64_t now = launched.load();
    while (launched.load() < now + 100) std::this_thread::yield();
    CHECK(TestMonitor::activities() == activities);
  }
  over = true;
  for (std::thread& thread : threads) thread.join();
  CHECK(gpu.calls_after_finalize == 0);
  CHECK(TestMonitor::losses().contains("internal_error") == false);
}

TEST_CASE("waits for the device say how long their thread ran: it may spin or sleep") {
  Fakes fakes(LEADLINE_NVIDIA_FAKES);
  FakeGpu& gpu = fakes.gpu();
  fresh(gpu);
  FakeClock clock(1);
  const auto wait = [&](const char* name, std::int64_t ran_ns) {
    const Region region(name);
    const ApiScope call(nvidia::cupti::Domain::kRuntime, 165, "cudaDeviceSynchronize", nullptr, gpu.context());
    gpu.tick(9'000);
    clock.advance_cpu(ran_ns);
  };  // lasts for 10,000 ns
  REQUIRE(nvidia::start(quick()).measuring);
  clock.advance_cpu(777);
  wait("spins", 9'900);
  wait("sleeps", 12);
  wait("sleeps", 0);
  clock.advance_cpu(777);
  wait("two clocks", 10'500);  // which are not read at once: it ran no longer than it waited
  {
    const Region region("launches");
    FakeKernel kernel;
    fakes.launch(&kernel, {1, 1, 1}, {32, 1, 1}, nullptr, 0, gpu.stream(7));
  }
  nvidia::stop();
  const std::string per_call = ";cudaDeviceSynchronize | device -1 stream -1 | sync_running_time count ";
  CHECK(TestMonitor::folded({"sync_running_time"}) == "sleeps" + per_call + "2 sum 12\n" + "spins" + per_call +
                                                          "1 sum 9900\n" + "two clocks" + per_call + "1 sum 10000\n");
}

TEST_CASE("a call that was open at the end of one session hides no call of the next") {
  Fakes fakes(LEADLINE_NVIDIA_FAKES);
  FakeGpu& gpu = fakes.gpu();
  fresh(gpu);
  FakeKernel kernel;
  const Region region("work");
  REQUIRE(nvidia::start(quick()).measuring);
  {
    const ApiScope open(nvidia::cupti::Domain::kDriver, 307, "cuLaunchKernel", nullptr, gpu.context());
    nvidia::stop();
    REQUIRE(nvidia::start(quick()).measuring);
  }
  fakes.launch(&kernel, {1, 1, 1}, {32, 1, 1}, nullptr, 0, gpu.stream(7));
  nvidia::stop();
  CHECK(TestMonitor::api_events(LEADLINE_BEGIN).size() == 2);
  CHECK(TestMonitor::losses()["gpu_record_unattributed"] == 0);
  CHECK(TestMonitor::folded({"gpu_time"}) ==
        "work;cuLaunchKernel;cuLaunchKernel;kernel | device 0 stream 7 | gpu_time count 1 sum 1000\n");
}

TEST_CASE("kernels of one name from several generated files are told apart by the file that launches them") {
  Fakes fakes(LEADLINE_NVIDIA_FAKES);
  FakeGpu& gpu = fakes.gpu();
  fresh(gpu);
  FakeKernel kernel;
  kernel.name = "triton_poi_fused_add_9";
  const auto detail_under = [&](const char* region) {
    {
      const Region file(region);
      fakes.launch(&kernel, {1, 1, 1}, {32, 1, 1}, nullptr, 0, gpu.stream(7));
    }
    nvidia::flush(0);
    return TestMonitor::detail_of(kernel.name);
  };
  gpu::kernel_sources().put(kernel.name, {"model.py", 1, "{\"of\": \"both\"}"});
  gpu::kernel_sources().put_user(kernel.name, "first.py", {"model.py", 2, "{\"of\": \"first\"}"});
  REQUIRE(nvidia::start(quick()).measuring);
  CHECK(detail_under("first.py") == "{\"of\": \"both\"}");  // one file: nothing to tell apart
  gpu::kernel_sources().put_user(kernel.name, "second.py", {"model.py", 3, "{\"of\": \"second\"}"});
  CHECK(detail_under("first.py") == "{\"of\": \"first\"}");
  CHECK(detail_under("second.py") == "{\"of\": \"second\"}");
  CHECK(detail_under("by hand") == "{\"of\": \"both\"}");
  nvidia::stop();
}

TEST_CASE("a CUPTI before 12 is refused, one after 13 is used with a mark") {
  Fakes fakes(LEADLINE_NVIDIA_FAKES);
  FakeGpu& gpu = fakes.gpu();
  fresh(gpu);
  gpu.cupti_version = 17;
  const nvidia::Status old = nvidia::start(quick());
  CHECK_FALSE(old.measuring);
  CHECK(old.message.find("older than CUDA 12") != std::string::npos);
  CHECK(TestMonitor::losses()["provider_unavailable"] == 1);
  nvidia::stop();
  fresh(gpu);
  gpu.cupti_version = 140000;
  gpu.driver_cuda_version = 14000;
  CHECK(nvidia::start(quick()).measuring);
  CHECK(TestMonitor::loss_detail("provider_unavailable").find("newer than this version") != std::string::npos);
  nvidia::stop();
}

TEST_CASE("CUDA that starts later is measured from its first call; without a context there is no thread of ours") {
  Fakes fakes(LEADLINE_NVIDIA_FAKES);
  FakeGpu& gpu = fakes.gpu();
  fresh(gpu);
  gpu.started = false;
  const auto threads = own_threads();
  CHECK(nvidia::await_cuda(quick()).awaiting);
  CHECK_FALSE(nvidia::is_measuring());
  CHECK(leadline_cuda_initialize() == 1);  // the driver, inside the program's cuInit
  CHECK(nvidia::is_measuring());
  gpu.started = true;
  CHECK(threads_since(threads) == 0);
  {
    const Region region("train");
    FakeKernel kernel;
    fakes.launch(&kernel, {132, 1, 1}, {256, 1, 1}, nullptr, 0, gpu.stream(7));
  }
  CHECK(threads_since(threads) == 1);
  CHECK(nvidia::stop().message == "");
  CHECK(none_left_since(threads));
  CHECK(TestMonitor::folded({"gpu_time", "occupancy"}) ==
        "train;cuLaunchKernel;kernel | device 0 stream 7 | gpu_time count 1 sum 1000\n"
        "train;cuLaunchKernel;kernel | device 0 stream 7 | occupancy count 1 sum 1000000\n");
  CHECK(TestMonitor::losses().empty());
}

TEST_CASE("CUDA that starts and is not used, or without a word, ends without a word or with one") {
  Fakes fakes(LEADLINE_NVIDIA_FAKES);
  FakeGpu& gpu = fakes.gpu();
  fresh(gpu);
  gpu.started = false;
  CHECK(nvidia::await_cuda(quick()).awaiting);
  CHECK(leadline_cuda_initialize() == 1);
  CHECK(nvidia::stop().message == "");
  CHECK(TestMonitor::losses().empty());
  gpu.started = false;
  CHECK(nvidia::await_cuda(quick()).awaiting);
  gpu.started = true;  // nobody told
  CHECK(nvidia::stop().message == "");
  CHECK(nvidia::await_cuda(quick()).measuring);  // as start() where CUDA runs
  nvidia::stop();
  gpu.started = false;
  CHECK(nvidia::await_cuda(quick()).awaiting);
  gpu.started = true;
  gpu.context();
  CHECK(nvidia::stop().message.find("leadline run") != std::string::npos);
  CHECK(TestMonitor::losses() == std::map<std::string, std::uint64_t>{{"provider_unavailable", 1}});
  CHECK(leadline_cuda_initialize() == 1);  // nobody awaits it any more
  CHECK_FALSE(nvidia::is_measuring());
}

TEST_CASE("stop with work that never ends takes less than a second") {
  Fakes fakes(LEADLINE_NVIDIA_FAKES);
  fresh(fakes.gpu());
  nvidia::Options options = quick();
  options.wait_at_stop_s = 0.4;
  REQUIRE(nvidia::start(options).measuring);
  FakeKernel kernel;
  fakes.gpu().delivery.hold_back = 10;
  for (int i = 0; i < 5; ++i) fakes.launch(&kernel, {1, 1, 1}, {32, 1, 1}, nullptr, 0, fakes.gpu().stream(7));
  const auto before = std::chrono::steady_clock::now();
  nvidia::stop();
  CHECK(std::chrono::steady_clock::now() - before < std::chrono::seconds(1));
}

TEST_CASE("a recording folds to the same result again") {
  Fakes fakes(LEADLINE_NVIDIA_FAKES);
  FakeGpu& gpu = fakes.gpu();
  fresh(gpu);
  const std::string path = std::string(LEADLINE_NVIDIA_FAKES) + "/recording.txt";
  nvidia::Options options = quick();
  options.recording = path;
  options.flush_interval_s = 3600;
  gpu.delivery.order = Delivery::Order::kShuffled;
  REQUIRE(nvidia::start(options).measuring);
  {
    const Region train("train");
    FakeKernel gemm{"_Z4gemmPf", 5000, 64, 0, false};
    FakeKernel relu{"relu", 700, 32, 0, false};
    void* graph = nullptr;
    void* exec = nullptr;
    fakes.begin_capture(gpu.stream(7), 0);
    fakes.launch(&relu, {1, 1, 1}, {32, 1, 1}, nullptr, 0, gpu.stream(7));
    fakes.end_capture(gpu.stream(7), &graph);
    fakes.graph_instantiate(&exec, graph, 0);
    for (int i = 0; i < 50; ++i) {
      const Region step("step");
      fakes.memcpy_async(nullptr, nullptr, 4096, 1, gpu.stream(8));
      fakes.launch(&gemm, {264, 1, 1}, {256, 1, 1}, nullptr, 0, gpu.stream(7));
      fakes.launch(&relu, {132, 1, 1}, {128, 1, 1}, nullptr, 0, gpu.stream(7));
      fakes.graph_launch(exec, gpu.stream(7));
      gpu.tick(20'000);
    }
    fakes.device_synchronize();
  }
  nvidia::stop();
  const std::string expected = text_of(path + ".folded");
  CHECK(expected.find("captured at") != std::string::npos);
  CHECK(expected.find("gpu_idle_time") != std::string::npos);
  const gpu::ReplayResult again = gpu::replay(path, nvidia::kVendor);
  CHECK(again.error == "");
  CHECK(again.records == 50 * 4 + 1);
  CHECK(again.unattributed == 0);
  CHECK(again.folded == expected);
  CHECK(gpu::replay("/no/such/file", nvidia::kVendor).error != "");
}

TEST_CASE("every committed recording folds to what it folded to when it was made") {
  std::size_t replayed = 0;
  for (const auto& entry : std::filesystem::directory_iterator(LEADLINE_NVIDIA_RECORDINGS)) {
    if (entry.path().extension() != ".txt") continue;
    CAPTURE(entry.path().filename().string());
    TestMonitor::reset(nullptr);
    const gpu::ReplayResult result = gpu::replay(entry.path().string(), nvidia::kVendor);
    CHECK(result.error == "");
    CHECK(result.records > 0);
    CHECK(result.folded == text_of(entry.path().string() + ".folded"));
    ++replayed;
  }
  CHECK(replayed > 0);
}

TEST_CASE("a forked child measures no GPU work and says why; the parent goes on") {
  Fakes fakes(LEADLINE_NVIDIA_FAKES);
  fresh(fakes.gpu());
  REQUIRE(nvidia::start(quick()).measuring);
  const pid_t child = fork();
  if (child == 0) {
    const nvidia::Status status = nvidia::start(quick());
    const bool said = !status.measuring && status.message.find("forked after CUDA") != std::string::npos;
    _exit(said && !nvidia::is_measuring() ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(nvidia::is_measuring());
  nvidia::stop();
}

TEST_CASE("many records fold in constant memory") {
  // LEADLINE_STRESS_RECORDS sets the number; the long form (10 million) is run by hand and before a release.
  const char* asked = std::getenv("LEADLINE_STRESS_RECORDS");
  const std::uint64_t records = asked ? std::strtoull(asked, nullptr, 10) : 200'000;
  TestMonitor::reset([] { return std::int64_t{0}; });
  gpu::CorrelationMap launches;
  const std::uint32_t thread = launches.log()->take();
  gpu::GraphMap graphs;
  gpu::KernelSources sources;
  gpu::DeviceInfo device;
  gpu::ActivityFold fold(launches, graphs, sources, nvidia::kVendor);
  fold.describe({device});
  const Region region("train");
  const leadline_context place = leadline_monitor_context();
  long after_warm_up = 0;
  for (std::uint64_t i = 0; i < records; ++i) {
    const auto id = static_cast<std::uint32_t>(i);
    const auto at = static_cast<std::int64_t>(i * 100);
    launches.put(id, {place, at, thread, LEADLINE_GPU_LAUNCH, 0, false}, true);
    gpu::Work work;
    work.correlation = id;
    work.start_ns = at + 50;
    work.end_ns = at + 90;
    work.device = 0;
    work.stream = static_cast<std::int64_t>(i % 16);
    work.name = i % 2 == 0 ? "even" : "odd";
    work.blocks = 1;
    work.block_threads = 32;
    fold.add(work);
    if (i % 10'000 == 0) fold.settle_before(at);
    if (i == 100'000) after_warm_up = resident_kib();
  }
  const long grown = resident_kib() - after_warm_up;
  fold.finish();
  CHECK(fold.counters().records == records);
  CHECK(fold.counters().unattributed == 0);
  CHECK(fold.totals().at(0).busy_ns == static_cast<std::int64_t>(records) * 40);
  CHECK(launches.outstanding() == 0);
  CHECK(TestMonitor::losses().empty());
  CAPTURE(grown);
#if !defined(__SANITIZE_ADDRESS__)  // address sanitizer keeps freed memory back, so the process grows whatever we do
  CHECK(grown < 8 * 1024);          // KiB: the ring's last pages, nothing per record
#endif
}

}  // namespace leadline::testing
