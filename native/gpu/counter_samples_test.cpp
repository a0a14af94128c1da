#include "gpu/counter_samples.h"

#include <doctest/doctest.h>

#include <limits>
#include <map>
#include <random>

#include "gpu/measure.h"

using namespace leadline::gpu;
using leadline::MetricKind;

namespace {

struct Told {
  std::map<leadline_context, std::map<MetricKind, std::int64_t>> values;
  CounterSamples::Tell tell() {
    return [this](const KernelRun& run, const std::string&, const std::vector<leadline_measure>& measures) {
      for (const leadline_measure& one : measures) {
        values[run.context][static_cast<MetricKind>(one.metric)] += one.value;
      }
    };
  }
};

KernelRun run_of(leadline_context context, std::int64_t start, std::int64_t end) {
  KernelRun run;
  run.context = context;
  run.device = 0;
  run.start_ns = start;
  run.end_ns = end;
  return run;
}

CounterBatch batch_of(std::int64_t start, std::int64_t interval, std::vector<double> values) {
  CounterBatch batch;
  batch.device = 0;
  batch.metrics = {{MetricKind::kTensorTime, CounterMeaning::kShareOfInterval},
                   {MetricKind::kOccupiedTime, CounterMeaning::kShareOfWork},
                   {MetricKind::kDramBytes, CounterMeaning::kAmount}};
  for (std::size_t i = 0; i < values.size() / 3; ++i) {
    const std::int64_t from = start + static_cast<std::int64_t>(i) * interval;
    batch.intervals.push_back({from, from + interval});
  }
  batch.values = std::move(values);
  return batch;
}

}  // namespace

TEST_CASE("a kernel that fills a part of an interval has all of its work and only its own time") {
  CounterSamples samples;
  Told told;
  samples.window_opens(0, 0);
  samples.ran(run_of(1, 200, 700), "k");
  samples.give(batch_of(0, 1000, {0.25, 0.5, 4000}));
  samples.window_closes(0, 1000);
  samples.settle(1000, told.tell());
  auto& k = told.values.at(1);
  CHECK(k[MetricKind::kCountedTime] == 500);
  CHECK(k[MetricKind::kTensorTime] == 250);  // all of the interval's, which is half of the kernel's time
  CHECK(k[MetricKind::kOccupiedTime] == 250);
  CHECK(k[MetricKind::kDramBytes] == 4000);
}

TEST_CASE("kernels side by side share an interval, and the time of both is not counted twice") {
  CounterSamples samples;
  Told told;
  samples.window_opens(0, 0);
  samples.ran(run_of(1, 0, 1000), "a");
  samples.ran(run_of(2, 500, 1000), "b");
  samples.ran(run_of(3, 2000, 2500), "later");
  samples.give(batch_of(0, 1000, {0.9, 1.0, 3000, 0.5, 0.5, 77}));
  samples.window_closes(0, 2000);
  samples.settle(5000, told.tell());
  CHECK(told.values[1][MetricKind::kCountedTime] == 667);
  CHECK(told.values[2][MetricKind::kCountedTime] == 333);
  CHECK(told.values[1][MetricKind::kDramBytes] == 2000);
  CHECK(told.values[2][MetricKind::kDramBytes] == 1000);
  CHECK(told.values.count(3) == 0);
  CHECK(samples.counters().no_record == 1);
}

TEST_CASE("amounts and times are kept, however kernels and intervals lie") {
  std::mt19937 random(7);
  const auto number = [&](int most) { return static_cast<std::int64_t>(random() % static_cast<unsigned>(most)); };
  for (int round = 0; round < 50; ++round) {
    CounterSamples samples;
    Told told;
    samples.window_opens(0, 0);
    std::vector<KernelRun> runs;
    for (int i = 0; i < 12; ++i) {
      const std::int64_t start = number(9000);
      runs.push_back(run_of(static_cast<leadline_context>(1 + number(5)), start, start + 1 + number(2500)));
      samples.ran(runs.back(), i % 2 == 0 ? "k" : "l");
    }
    std::vector<double> values;
    double bytes = 0;
    std::int64_t busy = 0;
    for (std::int64_t from = 0; from < 10'000; from += 500) {
      values.insert(values.end(), {0.3, 0.6, 1000.0});
      std::int64_t here = 0;
      for (std::int64_t at = from; at < from + 500; ++at) {
        for (const KernelRun& run : runs) {
          if (run.start_ns <= at && at < run.end_ns) {
            ++here;
            break;
          }
        }
      }
      busy += here;
      if (here > 0) bytes += 1000;
    }
    samples.give(batch_of(0, 500, values));
    samples.window_closes(0, 10'000);
    samples.settle(INT64_MAX, told.tell());
    std::map<MetricKind, std::int64_t> sums;
    for (const auto& [context, one] : told.values) {
      for (const auto& [metric, value] : one) sums[metric] += value;
    }
    CHECK(std::abs(sums[MetricKind::kCountedTime] - busy) <= 12);  // rounding of every place
    CHECK(std::abs(static_cast<double>(sums[MetricKind::kDramBytes]) - bytes) <= 12);
    CHECK(sums[MetricKind::kTensorTime] <= sums[MetricKind::kCountedTime] + 12);
  }
}

TEST_CASE("values that no device has are nothing") {
  CounterSamples samples;
  Told told;
  samples.window_opens(0, 0);
  samples.ran(run_of(1, 0, 1000), "k");
  samples.give(batch_of(0, 1000, {7.0, -3.0, std::numeric_limits<double>::quiet_NaN()}));
  samples.window_closes(0, 1000);
  samples.settle(1000, told.tell());
  CHECK(told.values[1][MetricKind::kTensorTime] == 1000);
  CHECK(told.values[1][MetricKind::kOccupiedTime] == 0);
  CHECK(told.values[1][MetricKind::kDramBytes] == 0);
}

TEST_CASE("kernels outside of windows and of other devices are not kept") {
  CounterSamples samples;
  Told told;
  samples.ran(run_of(1, 0, 1000), "before");
  samples.window_opens(0, 2000);
  samples.window_closes(0, 3000);
  KernelRun other = run_of(2, 2000, 3000);
  other.device = 1;
  samples.ran(other, "elsewhere");
  samples.give(batch_of(2000, 1000, {0.5, 0.5, 100}));
  samples.settle(3000, told.tell());
  CHECK(told.values.empty());
}
