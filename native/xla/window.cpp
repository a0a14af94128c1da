#include "xla/window.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_set>
#include <utility>

namespace leadline::xla {
namespace {

constexpr std::string_view kEnds = "end: ";
constexpr uint64_t kMostComparisons = 100'000'000;  // of events inside others; then only the same thread counts

struct Key {
  int64_t program;
  int64_t run;
  bool on_device;
  int64_t device;
  // NOLINTNEXTLINE(modernize-use-nullptr): it takes the 0 that the comparison is compared with for a pointer
  friend auto operator<=>(const Key&, const Key&) = default;
};

struct Work {
  size_t row;
  int64_t start_ps;
  int64_t end_ps;
};

bool inside_out(const Work& a, const Work& b) noexcept {
  return a.start_ps != b.start_ps ? a.start_ps < b.start_ps : a.end_ps > b.end_ps;
}

// How much of [start, end) the events after `first` of a list ordered by start cover.
int64_t covered(const std::vector<Work>& works, size_t at, uint64_t* comparisons) {
  const Work& outer = works[at];
  int64_t sum_ps = 0;
  int64_t until_ps = outer.start_ps;
  for (size_t i = at + 1; i < works.size() && works[i].start_ps < outer.end_ps; ++i) {
    ++*comparisons;
    if (works[i].end_ps > outer.end_ps || works[i].end_ps <= until_ps) continue;
    sum_ps += works[i].end_ps - std::max(until_ps, works[i].start_ps);
    until_ps = works[i].end_ps;
  }
  return sum_ps;
}

// A result may be there before the threads that made it have told of their last operation, and a run may be under way
// still where a window begins: with work on several devices, or more threads than cores. What is left of such a run
// would count as a whole one.
void find_cut_runs(std::vector<ProgramRun>& runs, const WholeRuns& expected) {
  std::unordered_map<int64_t, Expected> most;
  std::map<std::pair<int64_t, int64_t>, uint64_t> devices;
  const auto known = [&](const ProgramRun& run) {
    return !run.on_device && run.run != kUnknown && expected.contains(run.program);
  };
  for (const ProgramRun& run : runs) {
    if (!known(run)) continue;
    const auto [found, is_new] = most.try_emplace(run.program);
    const Expected& before = expected.at(run.program);
    if (is_new) found->second.operations = before.operations, found->second.devices = before.devices;
    found->second.operations = std::max(found->second.operations, run.once);
    found->second.devices = std::max(found->second.devices, ++devices[{run.program, run.run}]);
  }
  std::set<std::pair<int64_t, int64_t>> cut;
  for (const ProgramRun& run : runs) {
    if (!known(run)) continue;
    const Expected& all = most.at(run.program);
    if (run.once < all.operations || devices.at({run.program, run.run}) < all.devices)
      cut.insert({run.program, run.run});
  }
  for (ProgramRun& run : runs) run.whole = !known(run) || !cut.contains({run.program, run.run});
}

}  // namespace

Wanted window_wanted() {
  return {{"program_id", "run_id", "device_ordinal", "correlation_id"}, {"hlo_op", "hlo_module"}};
}

Window sums(const Space& space, const ControlFlow& control, const WholeRuns& expected) {
  const Space::Events& events = space.events();
  const auto program = [&](size_t row) { return events.number(0, row); };
  const auto operation = [&](size_t row) { return events.text(0, row); };
  std::vector<int64_t> self_ps(events.size(), 0);
  std::map<Key, std::vector<Work>> runs;
  std::map<uint32_t, std::vector<Work>> lines;
  for (size_t row = 0; row < events.size(); ++row) {
    const Space::Line& line = space.lines()[events.line[row]];
    const bool on_device = line.device >= 0;
    if (on_device && line.stream < 0) continue;
    if (operation(row) == kNoText || program(row) == kUnknown) continue;
    if (std::string_view(space.strings()[events.name[row]]).starts_with(kEnds)) continue;
    const int64_t start_ps = events.start_ps[row];
    int64_t end_ps = 0;
    if (__builtin_add_overflow(start_ps, events.duration_ps[row], &end_ps)) continue;
    const int64_t device = on_device ? line.device : events.number(2, row);
    runs[{program(row), events.number(1, row), on_device, device}].push_back({row, start_ps, end_ps});
    lines[events.line[row]].push_back({row, start_ps, end_ps});
    self_ps[row] = events.duration_ps[row];
  }
  for (auto& [line, works] : lines) {
    std::stable_sort(works.begin(), works.end(), inside_out);
    std::vector<const Work*> open;
    for (const Work& work : works) {
      while (!open.empty() && open.back()->end_ps <= work.start_ps) open.pop_back();
      if (!open.empty() && work.end_ps <= open.back()->end_ps) self_ps[open.back()->row] -= work.end_ps - work.start_ps;
      open.push_back(&work);
    }
  }
  Window window;
  for (auto& [key, works] : runs) {
    std::stable_sort(works.begin(), works.end(), inside_out);
    ProgramRun seen{key.program,           key.run, key.device, key.on_device, events.text(1, works.front().row),
                    works.front().start_ps};
    const auto whole = expected.find(key.program);
    std::unordered_set<uint32_t> once;
    for (const Work& work : works) {
      seen.end_ps = std::max(seen.end_ps, work.end_ps);
      ++seen.operations;
      if (whole != expected.end() && whole->second.once.contains(space.strings()[operation(work.row)]))
        once.insert(operation(work.row));
    }
    seen.once = once.size();
    window.runs.push_back(seen);
  }
  find_cut_runs(window.runs, expected);
  std::map<std::tuple<int64_t, uint32_t, int64_t, int64_t, uint32_t>, OperationSum> found;
  uint64_t comparisons = 0;
  auto seen = window.runs.begin();
  for (auto& [key, works] : runs) {
    if (!(seen++)->whole) continue;
    const auto others = control.find(key.program);
    for (size_t at = 0; at < works.size(); ++at) {
      const Work& work = works[at];
      const int64_t took_ps = work.end_ps - work.start_ps;
      const std::string_view name = space.strings()[operation(work.row)];
      if (others != control.end() && others->second.contains(name) && comparisons < kMostComparisons)
        self_ps[work.row] = took_ps - covered(works, at, &comparisons);
      const int64_t stream = key.on_device ? space.lines()[events.line[work.row]].stream : kUnknown;
      const int64_t device = key.on_device ? key.device : kUnknown;
      const uint32_t kernel = key.on_device ? events.name[work.row] : kNoText;
      const auto [place, is_new] = found.try_emplace({key.program, operation(work.row), device, stream, kernel});
      OperationSum& sum = place->second;
      if (is_new) sum = {key.program, operation(work.row), device, stream, kernel, 0, 0, 0, took_ps, took_ps, 0};
      ++sum.count;
      sum.total_ps += took_ps;
      sum.self_ps += std::max<int64_t>(self_ps[work.row], 0);
      sum.min_ps = std::min(sum.min_ps, took_ps);
      sum.max_ps = std::max(sum.max_ps, took_ps);
      sum.sum_squares += static_cast<double>(took_ps) * static_cast<double>(took_ps);
    }
  }
  std::stable_sort(window.runs.begin(), window.runs.end(),
                   [](const ProgramRun& a, const ProgramRun& b) { return a.run < b.run; });
  for (const auto& [key, sum] : found) window.operations.push_back(sum);
  return window;
}

}  // namespace leadline::xla
