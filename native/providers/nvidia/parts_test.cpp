// The parts on their own: maps, queue depth, occupancy, device timeline, names, decoding.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <thread>

#include "providers/nvidia/activity_fold.h"
#include "providers/nvidia/api_names.h"
#include "providers/nvidia/buffer_pool.h"
#include "providers/nvidia/correlation_map.h"
#include "providers/nvidia/cupti_library.h"
#include "providers/nvidia/device_timeline.h"
#include "providers/nvidia/event_map.h"
#include "providers/nvidia/kernel_names.h"
#include "providers/nvidia/marks.h"
#include "providers/nvidia/occupancy.h"
#include "providers/nvidia/records.h"
#include "providers/nvidia/stream_queue.h"

namespace leadline::nvidia {
namespace {

Launch launch(leadline_context context) { return {context, 0, 0, LEADLINE_GPU_LAUNCH, 0}; }

// Totals by looking at every nanosecond.
DeviceTotals slow_totals(const std::vector<Interval>& work) {
  DeviceTotals t;
  std::int64_t from = work[0].start_ns;
  std::int64_t to = 0;
  for (const Interval& i : work) {
    from = std::min(from, i.start_ns);
    to = std::max(to, i.end_ns);
  }
  for (std::int64_t now = from; now < to; ++now) {
    bool on[3] = {};
    for (const Interval& i : work) {
      if (i.start_ns <= now && now < i.end_ns) on[static_cast<int>(i.work_class)] = true;
    }
    t.compute_ns += on[0];
    t.copy_ns += on[1];
    t.communication_ns += on[2];
    t.copy_under_compute_ns += on[0] && on[1];
    t.communication_under_compute_ns += on[0] && on[2];
    (on[0] || on[1] || on[2] ? t.busy_ns : t.idle_ns) += 1;
  }
  return t;
}

}  // namespace

TEST_CASE("a launch is found by its id, long-running ones even after the ring has gone round") {
  CorrelationMap map;
  map.put(7, launch(70), true);
  for (std::uint32_t id = 8; id < 7 + CorrelationMap::kSlots; ++id) map.put(id, launch(1), false);
  CHECK(map.outstanding() == 1);
  map.put(7 + CorrelationMap::kSlots, launch(71), true);
  REQUIRE(map.get(7));
  CHECK(map.get(7 + CorrelationMap::kSlots)->context == 71);
  CHECK(map.outstanding() == 0);
  CHECK(map.forgotten() == 0);
  CHECK_FALSE(map.get(7));  // the overflow entry was its only copy, and its record has come
  CHECK_FALSE(map.get(999'999'999));
}

TEST_CASE("a graph launch answers for each of its nodes and is outstanding until the first") {
  CorrelationMap map;
  map.put(5, {50, 0, 0, LEADLINE_GPU_GRAPH_LAUNCH, 0}, true);
  CHECK(map.outstanding() == 1);
  for (int node = 0; node < 3; ++node) CHECK(map.get(5)->context == 50);
  CHECK(map.outstanding() == 0);
  map.put(6, launch(60), true);
  map.cancel(6);
  CHECK(map.outstanding() == 0);
}

TEST_CASE("concurrent launches and look-ups never mix entries") {
  CorrelationMap map;
  constexpr std::uint32_t kEach = 200'000;
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < 3; ++t) {
    threads.emplace_back([&map, t] {
      for (std::uint32_t i = 0; i < kEach; ++i) {
        const std::uint32_t id = i * 4 + t;
        map.put(id, {id * 1000ull + 1, id, t, LEADLINE_GPU_LAUNCH, 0}, true);
      }
    });
  }
  std::uint64_t wrong = 0;
  std::thread reader([&] {
    std::mt19937 random(3);
    for (std::uint32_t i = 0; i < 400'000; ++i) {
      const std::uint32_t id = random() % (kEach * 4);
      const std::optional<Launch> found = map.get(id);
      if (found && (found->context != id * 1000ull + 1 || found->start_ns != id)) ++wrong;
    }
  });
  for (std::thread& thread : threads) thread.join();
  reader.join();
  CHECK(wrong == 0);
}

TEST_CASE("busy, idle and overlap agree with counting every nanosecond, in any order of arrival") {
  std::mt19937 random(11);
  for (int round = 0; round < 20; ++round) {
    std::vector<Interval> work;
    for (int i = 0; i < 60; ++i) {
      const auto start = static_cast<std::int64_t>(1000 + random() % 2000);
      work.push_back(
          {start, start + 1 + static_cast<std::int64_t>(random() % 60), static_cast<WorkClass>(random() % 3), 1, 0});
    }
    std::int64_t gaps = 0;
    DeviceTimeline timeline([&](std::int64_t from, std::int64_t to, const Interval&) { gaps += to - from; });
    for (const Interval& i : work) timeline.add(i);
    timeline.sweep_before(1500);
    timeline.finish();
    const DeviceTotals got = timeline.totals();
    const DeviceTotals want = slow_totals(work);
    CHECK(got.busy_ns == want.busy_ns);
    CHECK(got.idle_ns == want.idle_ns);
    CHECK(gaps == want.idle_ns);
    CHECK(got.compute_ns == want.compute_ns);
    CHECK(got.copy_ns == want.copy_ns);
    CHECK(got.communication_ns == want.communication_ns);
    CHECK(got.copy_under_compute_ns == want.copy_under_compute_ns);
    CHECK(got.communication_under_compute_ns == want.communication_under_compute_ns);
    CHECK(got.late == 0);
  }
}

TEST_CASE("work that comes after its time was swept is counted as late and not twice") {
  DeviceTimeline timeline(nullptr);
  timeline.add({100, 200, WorkClass::kCompute, 1, 0});
  timeline.add({300, 400, WorkClass::kCompute, 1, 0});
  timeline.sweep_before(350);
  timeline.add({120, 180, WorkClass::kCompute, 1, 0});
  timeline.finish();
  CHECK(timeline.totals().late == 1);
  CHECK(timeline.totals().busy_ns == 200);
}

TEST_CASE("a gap is split at what the thread did, nowhere goes to what follows") {
  ThreadMarks marks;
  marks.add(100, 1);
  marks.add(150, 0);
  marks.add(170, 2);
  marks.add(300, 3);
  std::vector<std::pair<leadline_context, std::int64_t>> parts;
  marks.split(120, 250, 9, [&](leadline_context context, std::int64_t ns) { parts.emplace_back(context, ns); });
  CHECK(parts == std::vector<std::pair<leadline_context, std::int64_t>>{{1, 30}, {2, 100}});
  parts.clear();
  marks.split(150, 160, 9, [&](leadline_context context, std::int64_t ns) { parts.emplace_back(context, ns); });
  CHECK(parts == std::vector<std::pair<leadline_context, std::int64_t>>{{9, 10}});
}

TEST_CASE("queue depth counts earlier work of the stream that had not ended at the call") {
  StreamQueues queues;
  CHECK(queues.add(1, 0, 100) == 0);
  CHECK(queues.add(1, 10, 200) == 1);
  CHECK(queues.add(1, 20, 300) == 2);
  CHECK(queues.add(1, 150, 400) == 2);
  CHECK(queues.add(1, 1000, 1100) == 0);
  CHECK(queues.add(2, 0, 100) == 0);
  CHECK(queues.add(2, 20, 300) == 1);
  CHECK(queues.add(2, 10, 200) == 1);  // told late: only what ended before it was ahead of it
  CHECK(queues.add(2, 30, 400) == 3);
  std::int64_t deepest = 0;
  for (std::int64_t i = 0; i < 5000; ++i) deepest = queues.add(3, i, 1'000'000 + i);
  CHECK(deepest == static_cast<std::int64_t>(StreamQueues::kMost) - 1);
}

TEST_CASE("theoretical occupancy of known launches") {
  DeviceInfo h100;
  h100.major = 9;
  h100.multiprocessors = 132;
  h100.max_threads_per_multiprocessor = 2048;
  h100.max_blocks_per_multiprocessor = 32;
  h100.registers_per_multiprocessor = 65536;
  h100.shared_per_multiprocessor = 233472;
  h100.reserved_shared_per_block = 1024;
  const auto of = [&](std::int64_t blocks, std::int32_t threads, std::int32_t registers, std::int64_t shared) {
    return theoretical_occupancy({blocks, threads, registers, 0, shared, 0}, h100);
  };
  CHECK(of(132, 256, 32, 0).occupancy_millionths == 1'000'000);
  CHECK(of(132, 256, 64, 0).occupancy_millionths == 500'000);   // registers
  CHECK(of(132, 256, 255, 0).occupancy_millionths == 125'000);  // one block of 8 warps
  CHECK(of(132, 32, 32, 0).occupancy_millionths == 500'000);    // blocks: 32 warps of 64
  CHECK(of(132, 1024, 32, 0).blocks_per_multiprocessor == 2);
  CHECK(of(132, 256, 32, 227 * 1024).blocks_per_multiprocessor == 1);  // shared memory
  CHECK(of(132 * 8, 256, 32, 0).waves_thousandths == 1000);
  CHECK(of(132 * 8 * 5 / 2, 256, 32, 0).waves_thousandths == 2500);
  CHECK(theoretical_occupancy({1, 32, 32, 0, 0, 0}, DeviceInfo{}).blocks_per_multiprocessor == 0);
}

TEST_CASE("names: ABI suffixes go, a driver function's version stays") {
  CHECK(plain_name("cudaLaunchKernel_ptsz_v7000") == "cudaLaunchKernel");
  CHECK(plain_name("cudaGraphInstantiate_v12000") == "cudaGraphInstantiate");
  CHECK(plain_name("cuMemcpyHtoDAsync_v2_ptsz") == "cuMemcpyHtoDAsync_v2");
  CHECK(plain_name("cuMemFree_v2") == "cuMemFree_v2");
  CHECK(classify("cudaLaunchKernel_ptsz_v7000").per_thread_stream);
  CHECK(classify("cuLaunchKernelEx_v2").kind == LEADLINE_GPU_LAUNCH);  // not released yet, followed all the same
  CHECK_FALSE(classify("cudaGetLastError_v3020").followed);
  CHECK_FALSE(classify("cudaStreamQuery_v3020").followed);
  CHECK_FALSE(classify("cuMemGetInfo_v2").followed);
  CHECK(classify("cudaMallocHost_v3020").kind == LEADLINE_GPU_OTHER);  // host memory is not the device's
}

TEST_CASE("the CUPTI of the program's own CUDA is tried first, one newer than the driver not at all") {
  const std::vector<std::string> all{"/site/libcupti.so.13", "/site/libcupti.so.12", "libcupti.so"};
  CHECK(fitting_candidates(all, 0, 13) == all);
  CHECK(fitting_candidates(all, 12, 13) ==
        std::vector<std::string>{"/site/libcupti.so.12", "/site/libcupti.so.13", "libcupti.so"});
  CHECK(fitting_candidates(all, 13, 12) == std::vector<std::string>{"/site/libcupti.so.12", "libcupti.so"});
}

TEST_CASE("collectives are told by their kernels' names, old and new") {
  CHECK(collective_of("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)") == "AllReduce");
  CHECK(collective_of("ncclKernel_AllGather_RING_LL_Sum_int8_t(ncclDevComm*)") == "AllGather");
  CHECK(collective_of("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)") == "SendRecv");
  CHECK(collective_of("void gemm<float>()") == "");
}

TEST_CASE("a source learnt later reaches a kernel met before") {
  KernelSources sources;
  KernelNames names(sources);
  CHECK(names.get("triton_poi_fused_add_0").frame.line == 0);
  sources.put("triton_poi_fused_add_0", {"model.py", 12, "{\"operators\": [\"aten.add\"]}"});
  CHECK(names.get("triton_poi_fused_add_0").frame.line == 12);
  CHECK(names.get("_ZN2at6native3fooEv").text == "at::native::foo()");
  CHECK(names.get(nullptr).text == "(unnamed kernel)");
}

TEST_CASE("a buffer comes back to the pool, a stranger's does not") {
  BufferPool pool;
  std::vector<std::uint8_t*> taken;
  for (std::uint8_t* buffer = pool.take(); buffer; buffer = pool.take()) taken.push_back(buffer);
  CHECK(taken.size() == BufferPool::kMost);
  std::uint8_t other[8];
  CHECK_FALSE(pool.submit({other, 8, nullptr, 0}));
  CHECK(pool.submit({taken[5], 1, nullptr, 0}));
  CHECK(pool.submit({taken[2], 2, nullptr, 0}));
  std::vector<std::size_t> order;
  CHECK(pool.drain([&](const FullBuffer& full) { order.push_back(full.valid_bytes); }) == 2);
  CHECK(order == std::vector<std::size_t>{1, 2});
  CHECK(pool.take() != nullptr);
}

TEST_CASE("records without times are not work") {
  cupti::KernelRecord record{};
  record.kind = cupti::Kind::kConcurrentKernel;
  CHECK(decode(reinterpret_cast<const cupti::Record&>(record), cupti::kVersion13_0, 0).kind == WorkKind::kNone);
  record.start = 10;
  record.end = 30;
  record.grid[0] = record.grid[1] = record.grid[2] = 2;
  record.block[0] = 4;
  record.block[1] = record.block[2] = 1;
  const Work work = decode(reinterpret_cast<const cupti::Record&>(record), cupti::kVersion13_0, 5);
  REQUIRE(work.kind == WorkKind::kKernel);
  CHECK(work.start_ns == 15);
  CHECK(work.blocks == 8);
  CHECK(std::strcmp(copy_name(1, 2, 3), "Memcpy HtoD (Pinned -> Device)") == 0);
  CHECK(std::strcmp(copy_name(99, 99, 99), "Memcpy Unknown (Unknown -> Unknown)") == 0);
}

}  // namespace leadline::nvidia
