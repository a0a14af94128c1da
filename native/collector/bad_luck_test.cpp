// Every kind of event meets every kind of bad luck: no memory, a fork, the end of its thread, the end of the session.
// The program goes on, no figure is more than the truth, and what is missing is counted.

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "testing/event_script.h"
#include "testing/failing_allocator.h"
#include "testing/forked_child.h"
#include "testing/recorded_program.h"

using namespace leadline;
using namespace leadline::testing;

namespace {

// Count and sum of everything measured below the thread main, by metric and path; paths without the run's number.
struct Figure {
  uint64_t count = 0;
  int64_t sum = 0;
  friend bool operator==(const Figure&, const Figure&) = default;
};
using Figures = std::map<std::pair<std::string, std::string>, Figure>;

// A path without the numbers of the run.
std::string without_run(const std::string& path) {
  std::string text;
  bool number = false;
  for (const char letter : path) {
    number = letter == '#' || (number && letter >= '0' && letter <= '9');
    if (!number) text += letter;
  }
  return text;
}

Figures figures(RecordedProgram& program) {
  program.take();
  Figures all;
  const auto& rows = program.shown.metrics;
  for (size_t row = 0; row < rows.node.size(); ++row) {
    const auto metric = static_cast<MetricKind>(rows.metric[row]);
    const std::string path = without_run(program.path(rows.node[row]));
    // Steps reach from run to run, peaks are of one moment, and what operators ran is one value for a whole thread.
    if (metric == MetricKind::kPeakLiveBytes || metric == MetricKind::kOperatorRunningTime ||
        !path.starts_with("main") || path == "main/step")
      continue;
    Figure& figure = all[{std::string(to_string(metric)), path}];
    figure.count += rows.count[row];
    figure.sum += rows.sum[row];
  }
  return all;
}

// What was lost, as text; empty when nothing was.
std::string lost() {
  std::string text;
  for (size_t i = 0; i < kLossKindCount; ++i) {
    const auto kind = static_cast<LossKind>(i);
    if (losses().total(kind) != 0)
      text += std::string(to_string(kind)) + " " + std::to_string(losses().total(kind)) + " " + losses().detail(kind) +
              "\n";
  }
  return text;
}

// What came to `before`; figures that are the same are left out.
Figures since(Figures now, const Figures& before) {
  for (const auto& [key, figure] : before) {
    now[key].count -= figure.count;
    now[key].sum -= figure.sum;
  }
  std::erase_if(now, [](const auto& entry) { return entry.second == Figure(); });
  return now;
}

// The first figure that differs, as text.
std::string difference(const Figures& got, const Figures& truth) {
  for (const auto* one : {&got, &truth}) {
    for (const auto& [key, figure] : *one) {
      const auto in_got = got.find(key);
      const auto in_truth = truth.find(key);
      if (in_got != got.end() && in_truth != truth.end() && in_got->second == in_truth->second) continue;
      const auto shown = [&](const auto& found, const Figures& in) {
        return found == in.end() ? "none"
                                 : std::to_string(found->second.count) + " of " + std::to_string(found->second.sum);
      };
      return key.first + " of " + key.second + " is " + shown(in_got, got) + ", in truth " + shown(in_truth, truth);
    }
  }
  return "";
}

std::map<std::string, Figure> by_metric(const Figures& figures) {
  std::map<std::string, Figure> totals;
  for (const auto& [key, figure] : figures) {
    totals[key.first].count += figure.count;
    totals[key.first].sum += figure.sum;
  }
  return totals;
}

// What is more than in truth, as text.
std::string too_much(const Figures& got, const Figures& truth) {
  const auto known = by_metric(truth);
  for (const auto& [metric, figure] : by_metric(got)) {
    const auto found = known.find(metric);
    const Figure most = found == known.end() ? Figure() : found->second;
    // Exclusive time that an inner scope has not taken is the outer one's.
    const bool takes = metric == "time" || metric == "running_time";
    if (figure.count > most.count || (!takes && figure.sum > most.sum)) {
      return metric + ": " + std::to_string(figure.count) + " of " + std::to_string(figure.sum) + ", in truth " +
             std::to_string(most.count) + " of " + std::to_string(most.sum);
    }
  }
  return "";
}

const Figures& truth() {
  static const Figures known = [] {
    FakeClock clock(1'000);
    RecordedProgram program;
    Script(program, clock).run();
    Figures all = figures(program);
    CHECK(lost() == "");
    return all;
  }();
  return known;
}

}  // namespace

TEST_CASE("Every kind of event is measured") {
  const Figures& all = truth();
  CHECK(all.size() > 40);
  CHECK(by_metric(all).at("gpu_time").sum == 340);
  CHECK(by_metric(all).at("alloc_bytes").sum == 320);
  CHECK(by_metric(all).at("wait_time").sum == 3);
  FakeClock clock(1'000);
  RecordedProgram program;
  Script(program, clock).run();
  CHECK(difference(figures(program), all) == "");
}

TEST_CASE("Without memory at any one moment the program goes on, and what is missing is counted") {
  truth();
  uint64_t allocations = 0;
  for (uint64_t failing = 0; failing == 0 || failing <= allocations; ++failing) {
    FakeClock clock(1'000);
    RecordedProgram program;
    Script script(program, clock);
    const uint64_t before = t_allocations.made;
    t_allocations.fail_at = failing == 0 ? 0 : before + failing;
    script.run();
    t_allocations.fail_at = 0;
    if (failing == 0) allocations = t_allocations.made - before;
    const Figures got = figures(program);
    CAPTURE(failing);
    CHECK(too_much(got, truth()) == "");
    CHECK((lost() != "" || difference(got, truth()) == ""));
    CAPTURE(difference(got, truth()));
    // Afterwards all is as ever.
    const Figures before_next = figures(program);
    Monitor::instance().forget_open_scopes();
    const std::string lost_before = lost();
    Script(program, clock).run();
    const Figures next = since(figures(program), before_next);
    CHECK(difference(next, truth()) == "");
    CHECK(lost() == lost_before);
  }
  CHECK(allocations > 50);
}

TEST_CASE("With every so many allocations failing the program goes on") {
  truth();
  for (uint64_t every = 1; every <= 40; ++every) {
    FakeClock clock(1'000);
    RecordedProgram program;
    Script script(program, clock);
    t_allocations.fail_every = every;
    for (size_t i = 0; i < Script::events().size(); ++i) script.run(i, i + 1);
    t_allocations.fail_every = 0;
    CAPTURE(every);
    const Figures got = figures(program);
    CHECK(too_much(got, truth()) == "");
    CHECK((lost() != "" || difference(got, truth()) == ""));
  }
}

TEST_CASE("A thread may die at every event, and the others measure as ever") {
  truth();
  for (size_t at = 0; at <= Script::events().size(); ++at) {
    FakeClock clock(1'000);
    RecordedProgram program;
    std::thread([&] { Script(program, clock).run(0, at); }).join();
    if (Monitor::instance().paused()) program.resume();
    Script(program, clock).run();
    CAPTURE(at);
    CHECK(difference(figures(program), truth()) == "");
  }
}

TEST_CASE("A session may end at every event, and the next one measures as ever") {
  truth();
  const size_t pause = Script::number_of("measuring pauses");
  const size_t resume = Script::number_of("measuring goes on");
  for (size_t at = 0; at <= Script::events().size(); ++at) {
    FakeClock clock(1'000);
    auto first = std::make_unique<RecordedProgram>();
    Script cut(*first, clock);
    cut.run(0, at);
    first.reset();
    RecordedProgram second;
    cut.measured_by(second);
    cut.run(at, Script::events().size());  // ends whose begin the first one saw, device work that it launched
    const Figures left = figures(second);
    CAPTURE(at);
    if (at <= pause || at > resume) CHECK(too_much(left, truth()) == "");
    Script(second, clock).run();
    const Figures next = since(figures(second), left);
    CHECK(difference(next, truth()) == "");
  }
}

TEST_CASE("A program may fork at every event, and parent and child measure as ever") {
  truth();
  for (size_t at = 0; at <= Script::events().size(); ++at) {
    FakeClock clock(1'000);
    RecordedProgram program;
    Script script(program, clock);
    script.run(0, at);
    const int answer = answer_of_child([&] {
      Monitor::instance().after_fork();
      losses().clear();
      program.collector.after_fork();
      script.run(at, Script::events().size());
      const Figures rest = figures(program);
      if (!too_much(rest, truth()).empty()) return 1;
      Monitor::instance().forget_open_scopes();
      losses().clear();
      Script(program, clock).run();
      const Figures next = since(figures(program), rest);
      return next == truth() && lost().empty() ? 0 : 2;
    });
    CAPTURE(at);
    CHECK(answer == 0);
    script.run(at, Script::events().size());
    CHECK(difference(figures(program), truth()) == "");
  }
}

// The thread sanitizer does not know that a child has none of its parent's other threads.
#ifndef __SANITIZE_THREAD__
// The other thread stands in the middle of whatever it was changing when it asked for memory.
TEST_CASE("A program may fork while another thread is anywhere, and the child measures as ever") {
  static std::atomic<bool> waits{false};
  static std::atomic<bool> go{false};
  uint64_t allocations = 0;
  truth();
  for (uint64_t at = 0; at == 0 || at <= allocations; ++at) {
    FakeClock clock(1'000);
    RecordedProgram program;
    waits = go = false;
    Script script(program, clock);
    std::thread other([&] {
      const uint64_t before = t_allocations.made;
      t_allocations.call = [] {
        waits = true;
        while (!go) std::this_thread::yield();
      };
      t_allocations.call_at = at == 0 ? 0 : before + at;
      script.run();
      t_allocations.call_at = 0;
      if (at == 0) allocations = t_allocations.made - before;
      waits = true;
    });
    while (!waits) std::this_thread::yield();
    const int answer = answer_of_child([&] {
      Monitor::instance().after_fork();
      losses().clear();
      program.collector.after_fork();
      if (Monitor::instance().paused()) program.resume();
      Script(program, clock).run();
      return figures(program) == truth() && lost().empty() ? 0 : 1;
    });
    go = true;
    other.join();
    CAPTURE(at);
    CHECK(answer == 0);
  }
  CHECK(allocations > 50);
}
#endif
