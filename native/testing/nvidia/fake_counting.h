// Hardware counters of the fake GPU: readings at fixed intervals of what the kernels that ran did.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "providers/nvidia/pm_sampling_abi.h"
#include "providers/nvidia/range_abi.h"

namespace leadline::testing {

namespace cupti = nvidia::cupti;

// What a kernel does while it runs: percent of peaks, and amounts in a nanosecond.
struct FakeRates {
  double active = 100;
  double warps = 0;
  double tensor = 0;
  double dram = 0;
  double l2 = 0;
  double issue = 0;
  double bytes = 0;
  double instructions = 0;
  double wavefronts = 0;  // of shared memory, and those that conflicts of its banks added
  double conflicts = 0;
  double requests = 0;  // loads of global memory by warps, and their pieces
  double sectors = 0;
};

struct FakeCounting {
  static constexpr std::size_t kMetrics = 16;
  struct Reading {
    std::uint64_t start = 0;
    std::uint64_t end = 0;
    std::array<double, kMetrics> values{};
  };
  struct Ran {
    std::int32_t device = 0;
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;
    FakeRates rates;
  };
  struct OfDevice {
    bool on = false;
    bool open = false;
    std::int64_t since_ns = 0;
    std::int64_t until_ns = 0;
    std::uint64_t interval_ns = 0;
    cupti::TriggerMode trigger = cupti::TriggerMode::kClocks;
  };

  // What a test sets.
  std::map<std::string, FakeRates> rates;  // by kernel
  std::string chip = "GH100";
  std::set<std::string> unknown;     // metrics that the chip does not have
  std::size_t multiprocessors = 99;  // metrics of multiprocessors, but those of their timers, in one pass
  cupti::Result enable_result = cupti::kSuccess;
  cupti::Result start_result = cupti::kSuccess;
  bool overflow = false;            // told once
  std::int64_t clock_error_ns = 0;  // of the times of readings
  std::size_t at_once = 1000;       // readings in one image
  cupti::Result range_result = cupti::kSuccess;
  std::size_t passes_missing = 0;  // of the next stretch of replayed kernels
  bool range_too_many = false;     // one more range than kernels were launched
  bool records_of_replayed = false;

  // Of a context whose kernels are replayed.
  struct Ranges {
    bool configured = false;
    bool open = false;
    std::size_t passes = 1;
    std::size_t most = 0;
    std::vector<Reading> ranges;
    std::uint8_t* image = nullptr;
  };
  std::map<void*, Ranges> contexts;
  std::uint64_t graphs_replayed = 0;  // launched where kernels are replayed, which must not be
  std::uint64_t ranges_enabled = 0;
  bool replays(void* context) const {
    const auto found = contexts.find(context);
    return found != contexts.end() && found->second.open;
  }
  std::int64_t replay(void* context, const std::string& kernel, std::int64_t duration_ns);

  std::map<std::int32_t, OfDevice> devices;
  std::vector<Ran> ran_;
  std::uint64_t calls_while_off = 0;

  // How long replaying it takes, where it was launched on a context whose kernels are replayed.
  std::int64_t ran(std::int32_t device, const std::string& kernel, std::int64_t start_ns, std::int64_t end_ns,
                   void* context = nullptr);
  Reading reading(std::int32_t device, std::int64_t start_ns, std::int64_t end_ns) const;
  // 0: one is unknown.
  std::size_t passes(const std::vector<std::string>& names, cupti::ProfilerType type) const;
  void reset() { *this = {}; }
};

// Row of a metric in a reading; kMetrics for an unknown one.
std::size_t fake_counter(const std::string& name);

}  // namespace leadline::testing
