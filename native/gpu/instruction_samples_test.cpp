#include "gpu/instruction_samples.h"

#include <doctest/doctest.h>

#include <map>
#include <random>
#include <string>

using namespace leadline::gpu;

namespace {

struct Told {
  std::map<leadline_context, std::int64_t> samples;
  std::map<leadline_context, std::int64_t> latency;
  std::map<std::string, std::int64_t> by_detail;
  InstructionSamples::Tell tell() {
    return [this](const KernelRun& run, const std::string&, const std::vector<leadline_activity_child>& children) {
      for (const leadline_activity_child& child : children) {
        samples[run.context] += child.measures[0].value;
        if (child.measure_count > 1) latency[run.context] += child.measures[1].value;
        by_detail[child.detail] += child.measures[0].value;
      }
    };
  }
};

KernelRun run_of(leadline_context context, std::int64_t start, std::int64_t end, std::uint32_t correlation = 1) {
  KernelRun run;
  run.context = context;
  run.device = 0;
  run.start_ns = start;
  run.end_ns = end;
  run.correlation = correlation;
  return run;
}

SampleBatch batch_of(std::int64_t start, std::int64_t end, const char* function, std::uint64_t count,
                     std::uint32_t correlation = 0) {
  SampleBatch batch;
  batch.device = 0;
  batch.start_ns = start;
  batch.end_ns = end;
  batch.functions.emplace_back(function);
  batch.samples.push_back({0, correlation, 7, 16, "wait", count, count / 2});
  return batch;
}

}  // namespace

TEST_CASE("kernels of one name share samples by the time that they ran in the window") {
  InstructionSamples samples;
  Told told;
  samples.window_opens(0, 100);
  samples.ran(run_of(1, 0, 200), "k");    // 100 of it inside
  samples.ran(run_of(2, 200, 500), "k");  // 300
  samples.ran(run_of(3, 500, 600), "other");
  samples.ran(run_of(4, 10, 90), "k");  // before
  samples.give(batch_of(100, 600, "k", 1000));
  samples.window_closes(0, 600);
  samples.settle(599, told.tell());
  CHECK(told.samples.empty());  // its records may still be on their way
  samples.settle(600, told.tell());
  CHECK(told.samples == std::map<leadline_context, std::int64_t>{{1, 250}, {2, 750}});
  CHECK(told.latency == std::map<leadline_context, std::int64_t>{{1, 125}, {2, 375}});
  CHECK(samples.counters().by_window == 1000);
}

TEST_CASE("samples that name their launch are that launch's alone") {
  InstructionSamples samples;
  Told told;
  samples.window_opens(0, 0);
  samples.ran(run_of(1, 10, 20, 5), "k");
  samples.ran(run_of(2, 20, 300, 6), "k");
  samples.give(batch_of(0, 400, "k", 10, 5));
  samples.give(batch_of(0, 400, "called_by_k", 3, 6));
  samples.give(batch_of(0, 400, "k", 4, 99));  // no such launch was seen
  samples.window_closes(0, 400);
  samples.settle(INT64_MAX, told.tell());
  CHECK(told.samples == std::map<leadline_context, std::int64_t>{{1, 10}, {2, 3}});
  CHECK(samples.counters().unattributed == 4);
}

TEST_CASE("no sample is lost or made by dividing, and every place comes close to its part") {
  std::mt19937 random(3);
  for (int round = 0; round < 50; ++round) {
    InstructionSamples samples;
    Told told;
    samples.window_opens(0, 0);
    std::map<leadline_context, double> weight;
    std::int64_t now = 0;
    for (int i = 0; i < 20; ++i) {
      const auto context = static_cast<leadline_context>(random() % 6 + 1);
      const std::int64_t ns = random() % 1000 + 1;
      samples.ran(run_of(context, now, now + ns), "k");
      weight[context] += static_cast<double>(ns);
      now += ns;
    }
    SampleBatch batch = batch_of(0, now, "k", 0);
    batch.samples.clear();
    std::int64_t all = 0;
    for (std::uint64_t pc = 0; pc < 300; ++pc) {
      const std::uint64_t count = random() % 4;  // mostly fewer than there are places
      batch.samples.push_back({0, 0, 7, pc * 16, "wait", count, 0});
      all += static_cast<std::int64_t>(count);
    }
    samples.give(std::move(batch));
    samples.window_closes(0, now);
    samples.settle(INT64_MAX, told.tell());
    std::int64_t sum = 0;
    for (const auto& [context, count] : told.samples) {
      sum += count;
      CHECK(std::abs(static_cast<double>(count) -
                     static_cast<double>(all) * weight[context] / static_cast<double>(now)) <= 6);
    }
    CHECK(sum == all);
  }
}

TEST_CASE("a kernel that is slower inside windows is cost, one that is not is none") {
  InstructionSamples samples;
  Told told;
  std::int64_t now = 0;
  for (int window = 0; window < 20; ++window) {
    samples.window_opens(0, now);
    for (int i = 0; i < 5; ++i, now += 1500) samples.ran(run_of(1, now, now + 1500), "k");
    for (int i = 0; i < 5; ++i, now += 700) samples.ran(run_of(1, now, now + 700), "same");
    samples.window_closes(0, now);
    for (int i = 0; i < 5; ++i, now += 1000) samples.ran(run_of(1, now, now + 1000), "k");
    for (int i = 0; i < 5; ++i, now += 700) samples.ran(run_of(1, now, now + 700), "same");
    samples.settle(now, told.tell());
  }
  const std::int64_t cost = samples.take_slowdown_ns();
  CHECK(cost > 80 * 500);
  CHECK(cost <= 100 * 500);
  CHECK(samples.take_slowdown_ns() == 0);
}
