// Counters that can be asked for, by perf's names, and where each is read.
#pragma once

#include <linux/perf_event.h>

#include <array>
#include <cstdint>
#include <string_view>

#include "base/schema_generated.h"

namespace leadline::cpu {

// What getrusage() keeps for a thread, with no right needed and no zero by exclusion.
struct Usage {
  uint64_t minor_faults = 0;
  uint64_t major_faults = 0;
  uint64_t switches = 0;
};

enum class CounterSource : uint8_t {
  kUsage,     // `config`: a mask of the members of Usage, added up
  kSoftware,  // perf's, of the kernel
  kHardware,  // perf's, of the processor
  kNamed,     // an event of the processor that was asked for by its name
};

struct CounterKind {
  std::string_view name;
  std::string_view other_name;  // perf takes both; or empty
  MetricKind metric;
  CounterSource source;
  uint32_t type;
  uint64_t config;
  bool always = false;  // no code runs without some of it, so that zero means that nobody counts
};

inline constexpr uint64_t kMinorFaults = 1, kMajorFaults = 2, kSwitches = 4;

constexpr uint64_t cache(uint64_t which, uint64_t operation, uint64_t result) noexcept {
  return which | operation << 8 | result << 16;
}

inline constexpr std::array kCounterKinds{
    CounterKind{"page-faults", "faults", MetricKind::kPageFaults, CounterSource::kUsage, 0,
                kMinorFaults | kMajorFaults},
    CounterKind{"minor-faults", "", MetricKind::kMinorFaults, CounterSource::kUsage, 0, kMinorFaults},
    CounterKind{"major-faults", "", MetricKind::kMajorFaults, CounterSource::kUsage, 0, kMajorFaults},
    CounterKind{"context-switches", "cs", MetricKind::kContextSwitches, CounterSource::kUsage, 0, kSwitches},
    CounterKind{"cpu-migrations", "migrations", MetricKind::kCpuMigrations, CounterSource::kSoftware,
                PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS},
    CounterKind{"cycles", "cpu-cycles", MetricKind::kCycles, CounterSource::kHardware, PERF_TYPE_HARDWARE,
                PERF_COUNT_HW_CPU_CYCLES, true},
    CounterKind{"instructions", "", MetricKind::kInstructions, CounterSource::kHardware, PERF_TYPE_HARDWARE,
                PERF_COUNT_HW_INSTRUCTIONS, true},
    CounterKind{"ref-cycles", "", MetricKind::kRefCycles, CounterSource::kHardware, PERF_TYPE_HARDWARE,
                PERF_COUNT_HW_REF_CPU_CYCLES, true},
    CounterKind{"bus-cycles", "", MetricKind::kBusCycles, CounterSource::kHardware, PERF_TYPE_HARDWARE,
                PERF_COUNT_HW_BUS_CYCLES},
    CounterKind{"cache-references", "", MetricKind::kCacheReferences, CounterSource::kHardware, PERF_TYPE_HARDWARE,
                PERF_COUNT_HW_CACHE_REFERENCES},
    CounterKind{"cache-misses", "", MetricKind::kCacheMisses, CounterSource::kHardware, PERF_TYPE_HARDWARE,
                PERF_COUNT_HW_CACHE_MISSES},
    CounterKind{"branches", "branch-instructions", MetricKind::kBranches, CounterSource::kHardware, PERF_TYPE_HARDWARE,
                PERF_COUNT_HW_BRANCH_INSTRUCTIONS, true},
    CounterKind{"branch-misses", "", MetricKind::kBranchMisses, CounterSource::kHardware, PERF_TYPE_HARDWARE,
                PERF_COUNT_HW_BRANCH_MISSES},
    CounterKind{"stalled-cycles-frontend", "idle-cycles-frontend", MetricKind::kStalledCyclesFrontend,
                CounterSource::kHardware, PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_FRONTEND},
    CounterKind{"stalled-cycles-backend", "idle-cycles-backend", MetricKind::kStalledCyclesBackend,
                CounterSource::kHardware, PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_BACKEND},
    CounterKind{"L1-dcache-loads", "", MetricKind::kL1DcacheLoads, CounterSource::kHardware, PERF_TYPE_HW_CACHE,
                cache(PERF_COUNT_HW_CACHE_L1D, PERF_COUNT_HW_CACHE_OP_READ, PERF_COUNT_HW_CACHE_RESULT_ACCESS), true},
    CounterKind{"L1-dcache-load-misses", "", MetricKind::kL1DcacheLoadMisses, CounterSource::kHardware,
                PERF_TYPE_HW_CACHE,
                cache(PERF_COUNT_HW_CACHE_L1D, PERF_COUNT_HW_CACHE_OP_READ, PERF_COUNT_HW_CACHE_RESULT_MISS)},
    CounterKind{"L1-icache-load-misses", "", MetricKind::kL1IcacheLoadMisses, CounterSource::kHardware,
                PERF_TYPE_HW_CACHE,
                cache(PERF_COUNT_HW_CACHE_L1I, PERF_COUNT_HW_CACHE_OP_READ, PERF_COUNT_HW_CACHE_RESULT_MISS)},
    CounterKind{"LLC-loads", "", MetricKind::kLlcLoads, CounterSource::kHardware, PERF_TYPE_HW_CACHE,
                cache(PERF_COUNT_HW_CACHE_LL, PERF_COUNT_HW_CACHE_OP_READ, PERF_COUNT_HW_CACHE_RESULT_ACCESS)},
    CounterKind{"LLC-load-misses", "", MetricKind::kLlcLoadMisses, CounterSource::kHardware, PERF_TYPE_HW_CACHE,
                cache(PERF_COUNT_HW_CACHE_LL, PERF_COUNT_HW_CACHE_OP_READ, PERF_COUNT_HW_CACHE_RESULT_MISS)},
    CounterKind{"dTLB-loads", "", MetricKind::kDtlbLoads, CounterSource::kHardware, PERF_TYPE_HW_CACHE,
                cache(PERF_COUNT_HW_CACHE_DTLB, PERF_COUNT_HW_CACHE_OP_READ, PERF_COUNT_HW_CACHE_RESULT_ACCESS)},
    CounterKind{"dTLB-load-misses", "", MetricKind::kDtlbLoadMisses, CounterSource::kHardware, PERF_TYPE_HW_CACHE,
                cache(PERF_COUNT_HW_CACHE_DTLB, PERF_COUNT_HW_CACHE_OP_READ, PERF_COUNT_HW_CACHE_RESULT_MISS)},
    CounterKind{"iTLB-load-misses", "", MetricKind::kItlbLoadMisses, CounterSource::kHardware, PERF_TYPE_HW_CACHE,
                cache(PERF_COUNT_HW_CACHE_ITLB, PERF_COUNT_HW_CACHE_OP_READ, PERF_COUNT_HW_CACHE_RESULT_MISS)},
};

constexpr const CounterKind* find_counter(std::string_view name) noexcept {
  for (const CounterKind& kind : kCounterKinds) {
    if (name == kind.name || (!name.empty() && name == kind.other_name)) return &kind;
  }
  return nullptr;
}

}  // namespace leadline::cpu
