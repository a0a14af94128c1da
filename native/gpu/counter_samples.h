// Readings of a device's hardware counters, interval by interval, to the kernels that ran meanwhile.
//
// A reading says of an interval what all of a device did in it: kernels that ran then share it by the time that each
// ran. Shares of a unit's peak become time (its share of the interval), so that they add up over launches, lines and
// modules: divided by the time in which counters were read they are shares again. The part that reads and the part that
// folds records are two threads; both take one lock, a launch takes none.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/ids.h"
#include "gpu/instruction_samples.h"

namespace leadline::gpu {

// How a metric's values are meant.
enum class CounterMeaning : std::uint8_t {
  kShareOfInterval,  // 0 to 1 of the whole interval, idle time included
  kShareOfWork,      // 0 to 1 while kernels ran
  kAmount,           // in the metric's own unit, of the whole interval
};

struct CountedMetric {
  MetricKind metric = MetricKind::kCountedTime;
  CounterMeaning meaning = CounterMeaning::kAmount;
  bool operator==(const CountedMetric&) const = default;
};

// What was read on one device in one stretch of time.
struct CounterBatch {
  struct Interval {
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;
  };
  std::int32_t device = -1;
  std::vector<CountedMetric> metrics;
  std::vector<Interval> intervals;  // in their order
  std::vector<double> values;       // of each interval, as many as there are metrics
  std::int64_t end_ns() const { return intervals.empty() ? 0 : intervals.back().end_ns; }
};

struct CounterCounters {
  std::uint64_t readings = 0;      // intervals
  std::uint64_t runs_dropped = 0;  // kernels for which there was no room until readings came
  std::uint64_t no_record = 0;     // of those, in which no kernel's record lies: the device may have been busy
};

class CounterSamples {
 public:
  static constexpr std::size_t kMostRuns = 1u << 16;  // kept for windows that are not settled

  // The part that reads: from now on kernels are remembered, until the window is closed and settled.
  void window_opens(std::int32_t device, std::int64_t start_ns);
  void window_closes(std::int32_t device, std::int64_t end_ns);
  void give(CounterBatch&& batch);

  // The part that folds.
  void ran(const KernelRun& run, const char* mangled);
  using Tell = std::function<void(const KernelRun& run, const std::string& mangled,
                                  const std::vector<leadline_measure>& measures)>;
  // Tells what was read in windows that ended before `until_ns`, kernel by kernel.
  void settle(std::int64_t until_ns, const Tell& tell);

  CounterCounters counters() const;

 private:
  struct Window {
    std::int32_t device = -1;
    std::int64_t start_ns = 0;
    std::int64_t end_ns = INT64_MAX;  // still open
  };
  struct Kept {
    KernelRun run;
    const std::string* name = nullptr;
  };
  void tell_batch(const CounterBatch& batch, const Tell& tell);

  mutable std::mutex mutex_;
  std::deque<Window> windows_;
  std::deque<CounterBatch> batches_;
  std::deque<Kept> runs_;
  std::unordered_set<std::string, StringHash, std::equal_to<>> names_;  // its elements stay where they are
  CounterCounters counters_;
};

}  // namespace leadline::gpu
