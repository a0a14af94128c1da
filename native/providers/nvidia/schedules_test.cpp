// Programs drawn by a seed, over a CUPTI that keeps a buffer for each thread until it is full or all in it has ended:
// busy, idle and where the device starved must be what the device did, however late the records come.
#include <doctest/doctest.h>

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "providers/nvidia/provider.h"
#include "testing/nvidia/fakes.h"
#include "testing/test_monitor.h"

namespace leadline::testing {
namespace {

constexpr std::int64_t kMs = 1'000'000;

// A thread of the program that does what it is given, while the test waits.
class Worker {
 public:
  Worker() : thread_([this] { run(); }) {}
  ~Worker() {
    does([] {});
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    turn_.notify_all();
    thread_.join();
  }
  void does(std::function<void()> work) {
    std::unique_lock lock(mutex_);
    work_ = std::move(work);
    turn_.notify_all();
    turn_.wait(lock, [this] { return !work_; });
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    while (true) {
      turn_.wait(lock, [this] { return work_ || ends_; });
      if (ends_) return;
      work_();
      work_ = nullptr;
      turn_.notify_all();
    }
  }
  std::mutex mutex_;
  std::condition_variable turn_;
  std::function<void()> work_;
  bool ends_ = false;
  std::thread thread_;
};

struct Schedule {
  int threads = 2;     // forward, backward, ...: each launches its part of every step
  int streams = 1;     // of each thread
  int launches = 800;  // of each thread in a step
  std::int64_t kernel_ns = 500'000;
  std::int64_t loading_ns = 0;  // at the begin of each step, in a region
  int ahead = 1000;             // launches that the program runs ahead of the device
  std::int64_t flush_ns = 250 * kMs;
  std::size_t records_per_buffer = 0;
  std::int64_t lasts_ns = 20'000 * kMs;
};

struct Result {
  double busy = 0, idle = 0, true_busy = 0, true_idle = 0;
  double loading = 0, true_loading = 0;  // idle time in the region
  std::uint64_t late = 0;
};

std::int64_t sum_of(const std::string& folded, const std::string& wanted) {
  std::int64_t sum = 0;
  for (std::size_t at = 0; at < folded.size();) {
    const std::size_t end = folded.find('\n', at);
    const std::string line = folded.substr(at, end - at);
    if (line.find(wanted) != std::string::npos) sum += std::stoll(line.substr(line.rfind(' ') + 1));
    at = end + 1;
  }
  return sum;
}

std::int64_t number_in(const std::string& json, const std::string& key) {
  const std::size_t at = json.find("\"" + key + "\": ");
  return at == std::string::npos ? -1 : std::stoll(json.substr(at + key.size() + 4));
}

Result run(const Schedule& schedule) {
  Fakes fakes(LEADLINE_NVIDIA_FAKES);
  FakeGpu& gpu = fakes.gpu();
  gpu.reset();
  TestMonitor::reset([] { return FakeGpu::instance().now_ns.load(); });
  gpu.delivery.per_thread = true;
  gpu.buffers.most_records = schedule.records_per_buffer;
  gpu.keeps_truth = true;
  nvidia::Options options;
  options.cupti_candidates = {std::string(LEADLINE_NVIDIA_FAKES) + "/libcupti.so.13"};
  options.flush_interval_s = 3600;
  options.wait_at_stop_s = 0;
  std::string device;
  options.describe_device = [&](const DeviceDescription& described) { device = described.detail; };
  REQUIRE(nvidia::start(options).measuring);
  std::vector<std::pair<std::int64_t, std::int64_t>> loading;
  {
    std::vector<std::unique_ptr<Worker>> workers;
    for (int t = 0; t < schedule.threads; ++t) workers.push_back(std::make_unique<Worker>());
    FakeKernel kernel;
    kernel.duration_ns = schedule.kernel_ns;
    const std::int64_t until = gpu.now_ns.load() + schedule.lasts_ns;
    std::int64_t next_flush = gpu.now_ns.load() + schedule.flush_ns;
    const auto pass_to = [&](std::int64_t time_ns) {  // the clock goes on, flushes happen on the way
      while (next_flush <= time_ns) {
        gpu.now_ns = std::max(gpu.now_ns.load(), next_flush);
        nvidia::flush(0);
        next_flush += schedule.flush_ns;
      }
      gpu.now_ns = std::max(gpu.now_ns.load(), time_ns);
    };
    while (gpu.now_ns.load() < until) {
      for (int t = 0; t < schedule.threads; ++t) {
        workers[static_cast<std::size_t>(t)]->does([&] {
          if (t == 0 && schedule.loading_ns > 0) {
            const Region region("loading");
            const std::int64_t begin = gpu.now_ns.load();
            pass_to(begin + schedule.loading_ns);
            loading.emplace_back(begin, gpu.now_ns.load());
          }
          const Region region("part");
          for (int i = 0; i < schedule.launches; ++i) {
            const auto stream = static_cast<std::uint32_t>(7 + t % schedule.streams + i % schedule.streams);
            fakes.launch(&kernel, {1, 1, 1}, {32, 1, 1}, nullptr, 0, gpu.stream(stream));
            const std::size_t launched = gpu.truth.size();
            const auto ahead = static_cast<std::size_t>(schedule.ahead);
            pass_to(launched > ahead ? gpu.truth[launched - 1 - ahead].second : gpu.now_ns.load() + 5'000);
          }
        });
      }
    }
    pass_to(gpu.now_ns.load() + 60'000 * kMs);
  }
  nvidia::stop();
  Result result;
  auto truth = gpu.truth;
  std::sort(truth.begin(), truth.end());
  std::int64_t busy_until = truth.front().first;
  std::size_t load = 0;
  for (const auto& [begin, end] : truth) {
    if (begin > busy_until) {
      result.true_idle += static_cast<double>(begin - busy_until);
      // What lies before loading, when nothing else is begun, leads to it.
      while (load < loading.size() && loading[load].second <= busy_until) ++load;
      if (load < loading.size() && loading[load].first < begin)
        result.true_loading += static_cast<double>(std::min(begin, loading[load].second) - busy_until);
    }
    result.true_busy += static_cast<double>(std::max<std::int64_t>(0, end - std::max(begin, busy_until)));
    busy_until = std::max(busy_until, end);
  }
  result.busy = static_cast<double>(number_in(device, "busy_ns"));
  result.idle = static_cast<double>(number_in(device, "idle_ns"));
  result.late = static_cast<std::uint64_t>(number_in(device, "late_records"));
  result.loading = static_cast<double>(sum_of(TestMonitor::folded({"gpu_idle_time"}), "loading | "));
  CHECK(number_in(device, "late_ns") == 0);
  CHECK(TestMonitor::losses() == std::map<std::string, std::uint64_t>{});
  return result;
}

void check(const Result& result) {
  const double whole = result.true_busy + result.true_idle;
  CHECK(std::abs(result.busy - result.true_busy) <= 0.005 * whole);
  CHECK(std::abs(result.idle - result.true_idle) <= 0.005 * whole);
  CHECK(std::abs(result.loading - result.true_loading) <= 0.01 * result.true_loading);
  CHECK(result.late == 0);
}

}  // namespace

TEST_CASE("a device that two threads keep busy is told as busy, however far the program runs ahead") {
  struct Case {
    std::int64_t step_ms;
    int forward;
    int ahead;
  };
  for (const auto& [step_ms, launches, ahead] :
       {Case{1000, 1000, 1000}, {500, 400, 300}, {300, 200, 1000}, {2000, 2000, 1000}}) {
    CAPTURE(step_ms);
    Schedule schedule;
    schedule.launches = launches;
    schedule.kernel_ns = step_ms * kMs / (2 * launches);
    schedule.ahead = ahead;
    const Result result = run(schedule);
    CHECK(result.true_idle < 0.001 * result.true_busy);
    check(result);
  }
}

TEST_CASE("drawn programs: threads, streams, rates, run-ahead, sizes of buffers, intervals of flushes") {
  for (unsigned seed = 1; seed <= 12; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const auto draw = [&](int from, int to) {
      return from + static_cast<int>(random() % static_cast<unsigned>(to - from + 1));
    };
    Schedule schedule;
    schedule.threads = draw(1, 4);
    schedule.streams = draw(1, 3);
    schedule.launches = draw(5, 1500);
    schedule.kernel_ns = draw(20, 2000) * 1000;
    schedule.loading_ns = draw(0, 3) * draw(1, 200) * kMs;
    schedule.ahead = draw(1, 1024);
    schedule.flush_ns = draw(100, 2500) * kMs;
    schedule.records_per_buffer = draw(0, 1) == 0 ? 0 : static_cast<std::size_t>(draw(10, 4000));
    schedule.lasts_ns = draw(3, 10) * 1000 * kMs;
    check(run(schedule));
  }
}

}  // namespace leadline::testing
