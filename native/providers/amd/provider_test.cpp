// The AMD provider over the fake libraries: what is told where nothing can be measured, teardown with work in flight,
// forks, recordings, threads.
#include <doctest/doctest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>

#include "gpu/activity_fold.h"
#include "gpu/recording.h"
#include "providers/amd/chips.h"
#include "providers/amd/provider.h"
#include "testing/amd/fakes.h"
#include "testing/own_threads.h"
#include "testing/test_monitor.h"

namespace leadline::testing {
namespace {

using rocm::FakeRocm;
using rocm::Fakes;
using rocm::Kernel;

amd::Options quick() {
  amd::Options options;
  options.candidates = {std::string(LEADLINE_AMD_FAKES) + "/librocprofiler-sdk.so.1"};
  options.flush_interval_s = 0.002;
  options.wait_at_stop_s = 10;
  return options;
}

void fresh(FakeRocm& rocm) {
  rocm.reset();
  TestMonitor::reset([] { return FakeRocm::instance().now_ns.load(); });
}

void launch(Fakes& fakes, const Kernel& kernel, std::uint32_t stream = 7) {
  fakes.launch(&kernel, {1, 1, 1}, {32, 1, 1}, nullptr, 0, fakes.rocm().stream(stream));
}

std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("a launch carries what AMD tells of it") {
  Fakes fakes(LEADLINE_AMD_FAKES);
  fresh(fakes.rocm());
  REQUIRE(amd::start(quick()).measuring);
  {
    const Region region("train");
    Kernel kernel{"_Z4gemmPf", 5000, 128, 1024, false, 64, 48, 16};
    fakes.launch(&kernel, {608, 1, 1}, {256, 1, 1}, nullptr, 512, fakes.rocm().stream(7));
  }
  amd::stop();
  const std::string path = "train;hipLaunchKernel;gemm(float*) | device 0 stream 7 | ";
  const std::string folded =
      TestMonitor::folded({"gpu_time", "registers", "accumulation_registers", "scalar_registers", "scratch_bytes",
                           "static_shared_bytes", "dynamic_shared_bytes", "grid_blocks", "block_threads", "occupancy"});
  for (const char* line :
       {"gpu_time count 1 sum 5000", "registers count 1 sum 128", "accumulation_registers count 1 sum 64",
        "scalar_registers count 1 sum 48", "scratch_bytes count 1 sum 16", "static_shared_bytes count 1 sum 1024",
        "dynamic_shared_bytes count 1 sum 512", "grid_blocks count 1 sum 608", "block_threads count 1 sum 256",
        "occupancy count 1 sum 250000"}) {
    CAPTURE(line);
    CHECK(folded.find(path + line + "\n") != std::string::npos);
  }
  CHECK(TestMonitor::losses().empty());
}

TEST_CASE("launches that give no record are told, with the reason, and a second time nobody is") {
  Fakes fakes(LEADLINE_AMD_FAKES);
  fresh(fakes.rocm());
  fakes.rocm().blind = true;
  amd::Options options = quick();
  options.patience_s = 0;
  options.flush_interval_s = 3600;  // not between the two launches
  REQUIRE(amd::start(options).measuring);
  launch(fakes, Kernel{});
  launch(fakes, Kernel{});
  amd::stop();
  CHECK(TestMonitor::losses() == std::map<std::string, std::uint64_t>{{"provider_unavailable", 1}});
  CHECK(TestMonitor::loss_detail("provider_unavailable").find("2 HIP launches were seen") == 0);
  // A program that launches nothing is no riddle.
  fresh(fakes.rocm());
  REQUIRE(amd::start(options).measuring);
  amd::stop();
  CHECK(TestMonitor::losses().empty());
}

TEST_CASE("a minute of launches without a record is told while the program runs, by the program's clock") {
  Fakes fakes(LEADLINE_AMD_FAKES);
  fresh(fakes.rocm());
  fakes.rocm().blind = true;
  REQUIRE(amd::start(quick()).measuring);
  launch(fakes, Kernel{});
  const auto until_told = [&](std::int64_t after_ns) {
    fakes.rocm().tick(after_ns);
    for (int i = 0; i < 200 && TestMonitor::losses().empty(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return !TestMonitor::losses().empty();
  };
  CHECK_FALSE(until_told(1));  // the thread that looks has looked many times
  CHECK_FALSE(until_told(59'000'000'000));
  CHECK(until_told(2'000'000'000));
  CHECK(TestMonitor::loss_detail("provider_unavailable").find("1 HIP launches were seen, but no record") == 0);
  amd::stop();
  CHECK(TestMonitor::losses() == std::map<std::string, std::uint64_t>{{"provider_unavailable", 1}});
}

TEST_CASE("devices are described, with what AMD calls them") {
  Fakes fakes(LEADLINE_AMD_FAKES);
  fresh(fakes.rocm());
  std::vector<DeviceDescription> told;
  amd::Options options = quick();
  options.describe_device = [&](DeviceDescription device) { told.push_back(std::move(device)); };
  REQUIRE(amd::start(options).measuring);
  {
    const Region region("train");
    launch(fakes, Kernel{});
  }
  amd::stop();
  REQUIRE(told.size() >= 2);  // when first known, and at stop with totals
  CHECK(told.back().name == "AMD Instinct MI300X (fake)");
  CHECK(told.back().detail.find("\"architecture\": \"gfx942\"") != std::string::npos);
  CHECK(told.back().detail.find("\"busy_ns\": 1000,") != std::string::npos);
  const amd::Report report = amd::report();
  REQUIRE(report.details);
  CHECK(report.details->sdk_version == "1.0.0");
  CHECK(report.details->records == 1);
  CHECK(report.details->outstanding == 0);
}

TEST_CASE("links between devices that the program sees are told with them") {
  Fakes fakes(LEADLINE_AMD_FAKES);
  fresh(fakes.rocm());
  fakes.rocm().devices.resize(3, fakes.rocm().devices.front());
  std::vector<DeviceDescription> told;
  amd::Options options = quick();
  options.describe_device = [&](DeviceDescription device) { told.push_back(std::move(device)); };
  const auto detail_of_first = [&](const char* visible) {
    told.clear();
    if (visible) ::setenv("HIP_VISIBLE_DEVICES", visible, 1);
    REQUIRE(amd::start(options).measuring);
    launch(fakes, Kernel{});
    amd::stop();
    ::unsetenv("HIP_VISIBLE_DEVICES");
    REQUIRE(!told.empty());
    return told.front().detail;
  };
  const std::string link = "\"type\": \"xGMI\", \"weight\": 15, \"mb_per_s\": 64000}";
  CHECK(detail_of_first(nullptr).find("\"links\": [{\"device\": 1, " + link + ", {\"device\": 2, " + link + "]") !=
        std::string::npos);
  CHECK(detail_of_first("2,0").find("\"links\": [{\"device\": 1, " + link + "]") != std::string::npos);
  CHECK(detail_of_first("1").find("\"links\": []") != std::string::npos);
}

TEST_CASE("stop with work that gives no record takes less than a second and says so") {
  Fakes fakes(LEADLINE_AMD_FAKES);
  fresh(fakes.rocm());
  amd::Options options = quick();
  options.flush_interval_s = 3600;
  REQUIRE(amd::start(options).measuring);
  launch(fakes, Kernel{});
  amd::flush(0);
  fakes.rocm().delivery.drop = 5;  // and told
  for (int i = 0; i < 5; ++i) launch(fakes, Kernel{});
  const auto before = std::chrono::steady_clock::now();
  amd::stop();
  CHECK(std::chrono::steady_clock::now() - before < std::chrono::seconds(1));
  CHECK(TestMonitor::losses() == std::map<std::string, std::uint64_t>{{"gpu_records_dropped", 5}});
}

TEST_CASE("a recording folds to the same result again") {
  Fakes fakes(LEADLINE_AMD_FAKES);
  FakeRocm& rocm = fakes.rocm();
  fresh(rocm);
  const std::string path = std::string(LEADLINE_AMD_FAKES) + "/recording.txt";
  amd::Options options = quick();
  options.recording = path;
  options.flush_interval_s = 3600;
  rocm.delivery.order = rocm::Delivery::Order::kShuffled;
  REQUIRE(amd::start(options).measuring);
  {
    const Region train("train");
    const Kernel gemm{"_Z4gemmPf", 5000, 128, 0, false, 128, 32, 64};
    const Kernel relu{"relu", 700, 32};
    for (int i = 0; i < 50; ++i) {
      const Region step("step");
      fakes.memcpy_async(nullptr, nullptr, 4096, 1, rocm.stream(8));
      launch(fakes, gemm);
      launch(fakes, relu);
      rocm.tick(20'000);
    }
    fakes.device_synchronize();
  }
  amd::stop();
  const std::string expected = text_of(path + ".folded");
  CHECK(expected.find("scratch_bytes count 50 sum 3200") != std::string::npos);
  CHECK(expected.find("gpu_idle_time") != std::string::npos);
  const gpu::ReplayResult again = gpu::replay(path, amd::kVendor);
  CHECK(again.error == "");
  CHECK(again.records == 150);
  CHECK(again.unattributed == 0);
  CHECK(again.folded == expected);
}

TEST_CASE("calls on many threads while measuring begins, rests and ends") {
  Fakes fakes(LEADLINE_AMD_FAKES);
  fresh(fakes.rocm());
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      const Kernel kernel;
      while (!done.load()) launch(fakes, kernel, 10 + t);
    });
  }
  for (int i = 0; i < 5; ++i) {
    amd::Options options = quick();
    options.wait_at_stop_s = 0.01;
    CHECK(amd::start(options).measuring);
    amd::pause();
    amd::resume();
    amd::flush(0.001);
    amd::stop();
  }
  done = true;
  for (std::thread& thread : threads) thread.join();
}

TEST_CASE("a forked child measures no GPU work and says why; the parent goes on") {
  Fakes fakes(LEADLINE_AMD_FAKES);
  fresh(fakes.rocm());
  REQUIRE(amd::start(quick()).measuring);
  const pid_t child = fork();
  if (child == 0) {
    const amd::Status status = amd::start(quick());
    _exit(!status.measuring && status.message.find("forked after HIP") != std::string::npos ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(amd::report().status.measuring);
  amd::stop();
}

// What ends the SDK ends it for the whole process, so this runs in one of its own, which qemu cannot start where other
// processors are tested.
#ifdef __x86_64__
TEST_CASE("the SDK ends before measuring does: windows of samples end, and nothing calls it any more") {
  constexpr const char* kOwn = "LEADLINE_TEST_SDK_ENDS";
  if (std::getenv(kOwn) == nullptr) {
    const pid_t child = fork();
    if (child == 0) {
      ::setenv(kOwn, "1", 1);
      ::setenv("ROCPROFILER_PC_SAMPLING_BETA_ENABLED", "1", 1);
      ::setenv("FAKE_SAMPLES", "even,64,3,8", 1);
      ::execl("/proc/self/exe", "test", "-tc=the SDK ends before*", nullptr);
      _exit(127);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    return;
  }
  TestMonitor::reset([] { return FakeRocm::instance().now_ns.load(); });
  amd::Options options = quick();
  options.instructions = "on";
  options.instruction_budget = 1;
  options.sample_window_s = 3600;  // ends when it is told to
  std::thread([] {}).join();       // sanitizers begin a thread of their own with the first
  const auto before = own_threads();
  REQUIRE(amd::start(options).measuring);
  {
    Fakes fakes(LEADLINE_AMD_FAKES);
    for (int i = 0; i < 2000 && !fakes.rocm().sampling_on; ++i) {
      launch(fakes, Kernel{"even", 10});
      fakes.rocm().tick(1'000'000'000);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    REQUIRE(fakes.rocm().sampling_on.load());  // a window is open
    fakes.rocm().finalize();
    amd::stop();
    CHECK(fakes.rocm().sampling_on.load());  // the SDK was not called any more
  }
  CHECK(none_left_since(before));
}
#endif

TEST_CASE("many records fold in constant memory") {
  // LEADLINE_STRESS_RECORDS sets the number; the long form (10 million) is run by hand and before a release.
  const char* asked = std::getenv("LEADLINE_STRESS_RECORDS");
  const std::uint64_t records = asked ? std::strtoull(asked, nullptr, 10) : 50'000;
  Fakes fakes(LEADLINE_AMD_FAKES);
  FakeRocm& rocm = fakes.rocm();
  fresh(rocm);
  TestMonitor::ignore_events(true);
  amd::Options options = quick();
  options.flush_interval_s = 3600;
  REQUIRE(amd::start(options).measuring);
  const Kernel even{"even", 10};
  const Kernel odd{"odd", 10};
  const auto resident_kib = [] {
    long size = 0, resident = 0;
    std::ifstream("/proc/self/statm") >> size >> resident;
    return resident * (sysconf(_SC_PAGESIZE) / 1024);
  };
  long after_warm_up = 0;
  for (std::uint64_t i = 0; i < records; ++i) {
    launch(fakes, i % 2 == 0 ? even : odd, static_cast<std::uint32_t>(i % 16));
    if (i % 1000 == 999) amd::flush(0);
    if (i == 40'000) after_warm_up = resident_kib();
  }
  amd::flush(0);
  const long grown = resident_kib() - after_warm_up;
  CHECK(amd::report().details->records == records);
  CHECK(amd::report().details->unattributed == 0);
  CHECK(amd::report().details->outstanding == 0);
  amd::stop();
  TestMonitor::ignore_events(false);
  CAPTURE(grown);
#if !defined(__SANITIZE_ADDRESS__)  // address sanitizer keeps freed memory back, so the process grows whatever we do
  CHECK(grown < 12 * 1024);         // KiB: the rest of the ring, nothing per record
#endif
}

}  // namespace leadline::testing
