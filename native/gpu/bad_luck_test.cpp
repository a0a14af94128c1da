// Memory runs out while records of GPU work are folded: no record counts twice, and what is missing is counted.
#include <doctest/doctest.h>

#include <cstdint>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "gpu/activity_fold.h"
#include "gpu/buffer_pool.h"
#include "testing/failing_allocator.h"
#include "testing/test_monitor.h"

namespace leadline::gpu {
namespace {

using testing::t_allocations;
using testing::TestMonitor;

constexpr std::int64_t kDuration = 100;
constexpr std::int32_t kDevices = 2;
constexpr std::uint32_t kRounds = 3;  // of every kind of work
constexpr std::uint32_t kOfOneRound = 4;
constexpr std::uint64_t kRecords = std::uint64_t{kRounds} * kOfOneRound * kDevices;

// Kernels, copies, memory that is set and nodes of graphs, on two devices; of names long enough to take memory.
std::vector<Work> all_work() {
  static const std::string kNames[] = {"a_kernel_whose_name_does_not_fit_into_a_string_by_itself_0",
                                       "ncclDevKernel_AllReduce_Sum_f32_RING_LL_with_a_long_name"};
  std::vector<Work> all;
  for (std::uint32_t i = 0; i < kRecords; ++i) {
    Work work;
    work.correlation = i + 1;
    work.start_ns = 1000 + i * 2 * kDuration;
    work.end_ns = work.start_ns + kDuration;
    work.device = static_cast<std::int32_t>(i % kDevices);
    work.stream = 7 + i % 3;
    switch (i / kDevices % kOfOneRound) {
      case 0:
        work.kind = WorkKind::kCopy;
        work.bytes = 64;
        break;
      case 1:
        work.kind = WorkKind::kSet;
        work.bytes = 64;
        break;
      case 2:
        work.graph_node = 1ull << 32 | i;
        work.name = kNames[0].c_str();
        break;
      default:
        work.name = kNames[1].c_str();
    }
    all.push_back(work);
  }
  return all;
}

Occupancy half_full(const LaunchShape&, const DeviceInfo&) { return {1, 500'000, 1000}; }

// What one metric adds up to, over all places.
struct Total {
  std::uint64_t count = 0;
  std::int64_t sum = 0;
};
Total total(const std::string& metric) {
  Total all;
  const std::string text = TestMonitor::folded({metric});
  for (std::size_t at = 0; (at = text.find(" count ", at)) != std::string::npos;) {
    at += 7;
    all.count += std::stoull(text.substr(at));
    all.sum += std::stoll(text.substr(text.find(" sum ", at) + 5));
  }
  return all;
}

}  // namespace

TEST_CASE("without memory at any one moment a record is folded once or lost and counted, and the next ones are whole") {
  const std::vector<Work> work = all_work();
  std::uint64_t allocations = 0;
  for (std::uint64_t failing = 0; failing == 0 || failing <= allocations; ++failing) {
    TestMonitor::reset(nullptr);
    const testing::Region place("train");
    CorrelationMap launches;
    const GraphMap graphs;
    const KernelSources sources;
    ActivityFold fold(launches, graphs, sources, {.graph = "graph", .occupancy = half_full});
    for (const Work& one : work) {
      launches.put(one.correlation, {leadline_monitor_context(), 0, LaunchLog::kNone, 0, 0, false}, true);
    }
    const std::uint64_t before = t_allocations.made;
    t_allocations.fail_at = failing == 0 ? 0 : before + failing;
    for (const Work& one : work) fold.add_or_lose(one);
    fold.finish();
    t_allocations.fail_at = 0;
    if (failing == 0) allocations = t_allocations.made - before;
    CAPTURE(failing);
    const Total got = total("gpu_time");
    CHECK(got.sum == static_cast<std::int64_t>(got.count) * kDuration);
    std::uint64_t lost = 0;
    for (const auto& [kind, count] : TestMonitor::losses()) {
      if (kind == "gpu_records_dropped" || kind == "internal_error") lost += count;
    }
    CHECK(got.count <= kRecords);
    CHECK(got.count + lost >= kRecords);
    CHECK(lost <= 1);
    std::int64_t busy_ns = 0;
    for (const auto& [device, totals] : fold.totals()) busy_ns += totals.busy_ns;
    CHECK(busy_ns <= static_cast<std::int64_t>(kRecords) * kDuration);
    CHECK(busy_ns >= static_cast<std::int64_t>(kRecords - lost) * kDuration);
    CHECK(launches.outstanding() == 0);
  }
  CHECK(allocations > 10);
}

TEST_CASE("a buffer whose records could not all be handled does not come again") {
  BufferPool pool;
  std::uint8_t* const buffer = pool.take().data;
  REQUIRE(buffer != nullptr);
  REQUIRE(pool.submit({buffer, 1, nullptr, 0}));
  CHECK_THROWS_AS(pool.drain([](const FullBuffer&) { throw std::bad_alloc(); }), std::bad_alloc);
  CHECK(pool.drain([](const FullBuffer&) {}) == 0);
  CHECK(pool.take().data == buffer);
}

}  // namespace leadline::gpu
