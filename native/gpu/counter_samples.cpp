#include "gpu/counter_samples.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "base/ids.h"
#include "gpu/measure.h"

namespace leadline::gpu {
namespace {

// A place that runs of one kernel share: runs of it are not told apart in the tree.
using PlaceKey = std::tuple<leadline_context, leadline_context, std::uint8_t, std::uint64_t, std::int64_t, std::string>;

struct Sum {
  const KernelRun* run = nullptr;
  const std::string* name = nullptr;
  double counted_ns = 0;
  std::vector<double> values;
};

// Kernels that overlap one interval, with the time that each ran in it.
class Overlap {
 public:
  void clear() {
    parts_.clear();
    whole_ = 0;
  }
  void add(Sum& sum, std::int64_t start_ns, std::int64_t end_ns) {
    parts_.push_back({&sum, start_ns, end_ns});
    whole_ += static_cast<double>(end_ns - start_ns);
  }
  bool empty() const { return parts_.empty(); }
  // Time in which any of them ran.
  double busy_ns() {
    std::ranges::sort(parts_, {}, &Part::start_ns);
    std::int64_t busy = 0;
    std::int64_t until = INT64_MIN;
    for (const Part& part : parts_) {
      busy += std::max<std::int64_t>(0, part.end_ns - std::max(part.start_ns, until));
      until = std::max(until, part.end_ns);
    }
    return static_cast<double>(busy);
  }
  template <class Each>
  void each(Each each) const {
    for (const Part& part : parts_) each(*part.sum, static_cast<double>(part.end_ns - part.start_ns) / whole_);
  }

 private:
  struct Part {
    Sum* sum;
    std::int64_t start_ns, end_ns;
  };
  std::vector<Part> parts_;
  double whole_ = 0;
};

double in_unit(const CountedMetric& metric, double value, double interval_ns, double busy_ns) {
  if (!std::isfinite(value) || value < 0) return 0;
  switch (metric.meaning) {
    case CounterMeaning::kShareOfInterval:
      return std::min(std::min(value, 1.0) * interval_ns, busy_ns);  // clocks may differ by a part of an interval
    case CounterMeaning::kShareOfWork:
      return std::min(value, 1.0) * busy_ns;
    default:
      return value;
  }
}

}  // namespace

void CounterSamples::window_opens(std::int32_t device, std::int64_t start_ns) {
  const std::lock_guard lock(mutex_);
  windows_.push_back({device, start_ns});
}

void CounterSamples::window_closes(std::int32_t device, std::int64_t end_ns) {
  const std::lock_guard lock(mutex_);
  for (Window& window : windows_) {
    if (window.device == device && window.end_ns == INT64_MAX) window.end_ns = end_ns;
  }
}

void CounterSamples::give(CounterBatch&& batch) {
  const std::lock_guard lock(mutex_);
  counters_.readings += batch.intervals.size();
  if (!batch.intervals.empty()) batches_.push_back(std::move(batch));
}

void CounterSamples::ran(const KernelRun& run, const char* mangled) {
  const std::lock_guard lock(mutex_);
  const bool inside = std::ranges::any_of(windows_, [&](const Window& window) {
    return window.device == run.device && run.start_ns < window.end_ns && window.start_ns < run.end_ns;
  });
  if (!inside) return;
  if (runs_.size() >= kMostRuns) {
    runs_.pop_front();
    ++counters_.runs_dropped;
    count_loss(LossKind::kCountersDropped, 1,
               "More kernels ran while counters were read than are kept until the readings come.");
  }
  runs_.push_back({run, &*names_.emplace(mangled == nullptr ? "" : mangled).first});
}

CounterCounters CounterSamples::counters() const {
  const std::lock_guard lock(mutex_);
  return counters_;
}

void CounterSamples::settle(std::int64_t until_ns, const Tell& tell) {
  const std::lock_guard lock(mutex_);
  while (!batches_.empty() && batches_.front().end_ns() <= until_ns) {
    tell_batch(batches_.front(), tell);
    batches_.pop_front();
  }
  std::int64_t oldest = until_ns;
  for (const CounterBatch& batch : batches_) oldest = std::min(oldest, batch.intervals.front().start_ns);
  while (!windows_.empty() && windows_.front().end_ns <= oldest) windows_.pop_front();
  if (!windows_.empty()) oldest = std::min(oldest, windows_.front().start_ns);
  std::erase_if(runs_, [&](const Kept& kept) { return kept.run.end_ns <= oldest; });
}

void CounterSamples::tell_batch(const CounterBatch& batch, const Tell& tell) {
  std::vector<const Kept*> runs;
  for (const Kept& kept : runs_) {
    if (kept.run.device == batch.device) runs.push_back(&kept);
  }
  std::ranges::sort(runs, {}, [](const Kept* kept) { return kept->run.start_ns; });
  std::map<PlaceKey, Sum> sums;
  std::vector<const Kept*> running;
  Overlap overlap;
  std::size_t next = 0;
  const std::size_t width = batch.metrics.size();
  for (std::size_t i = 0; i < batch.intervals.size() && (i + 1) * width <= batch.values.size(); ++i) {
    const CounterBatch::Interval& interval = batch.intervals[i];
    while (next < runs.size() && runs[next]->run.start_ns < interval.end_ns) running.push_back(runs[next++]);
    std::erase_if(running, [&](const Kept* kept) { return kept->run.end_ns <= interval.start_ns; });
    overlap.clear();
    for (const Kept* kept : running) {
      const KernelRun& run = kept->run;
      const std::int64_t from = std::max(run.start_ns, interval.start_ns);
      const std::int64_t to = std::min(run.end_ns, interval.end_ns);
      if (to <= from) continue;
      Sum& sum = sums[{run.context, run.via, run.via_kind, run.graph_node, run.stream, *kept->name}];
      sum.run = &run;
      sum.name = kept->name;
      sum.values.resize(width);
      overlap.add(sum, from, to);
    }
    if (overlap.empty()) {
      ++counters_.no_record;
      continue;
    }
    const double busy_ns = overlap.busy_ns();
    const auto interval_ns = static_cast<double>(interval.end_ns - interval.start_ns);
    overlap.each([&](Sum& sum, double share) {
      sum.counted_ns += share * busy_ns;
      for (std::size_t m = 0; m < width; ++m) {
        sum.values[m] += share * in_unit(batch.metrics[m], batch.values[i * width + m], interval_ns, busy_ns);
      }
    });
  }
  std::vector<leadline_measure> measures;
  for (const auto& [key, sum] : sums) {
    measures.assign(1, {number(MetricKind::kCountedTime), std::llround(sum.counted_ns)});
    for (std::size_t m = 0; m < width; ++m) {
      measures.push_back({number(batch.metrics[m].metric), std::llround(sum.values[m])});
    }
    if (measures.front().value > 0) tell(*sum.run, *sum.name, measures);
  }
}

}  // namespace leadline::gpu
