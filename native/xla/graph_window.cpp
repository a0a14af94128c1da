#include "xla/graph_window.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <unordered_set>
#include <utility>

#include "xla/graph_events.h"
#include "xla/graph_memory.h"
#include "xla/saturating.h"

namespace leadline::xla {
namespace {

constexpr int kFarthest = 8;  // nodes that the optimizer took out, one behind the other, past which no input is sought
enum Number : uint8_t { kId, kStepId, kRequested, kProduces, kConsumes };
enum Text : uint8_t { kName, kKernelType };

struct Meaning {
  bool is_read = false;
  GraphEvent what = GraphEvent::kOther;
  uint32_t node = kNoText;  // or the function, or the stage
  uint32_t kind = kNoText;
};

struct Key {
  int64_t step;
  uint32_t node;
  uint32_t kind;
  bool operator==(const Key&) const = default;
};

struct HashOfKey {
  size_t operator()(const Key& key) const noexcept {
    const uint64_t pair = uint64_t{key.node} << 32 | key.kind;
    return std::hash<uint64_t>()(pair * 0x9e3779b97f4a7c15 ^ static_cast<uint64_t>(key.step));
  }
};

// When a node that holds no thread began and was done, each time that it ran.
struct Absent {
  Key key;
  std::vector<int64_t> begun;
  std::vector<int64_t> done;
};

struct Wait {
  size_t node;
  int64_t number;
  int64_t until_ps;
};

// Work that was put into a pool.
struct Put {
  int64_t at_ps;
  int64_t step;  // that did so
};

// A node of which nothing around it tells the step, in what a thread of a pool took on.
struct Strayed {
  uint32_t row;
  Meaning meaning;
  int64_t number;
  int64_t taken_ps;
};

constexpr size_t kNowhere = SIZE_MAX;

struct Open {
  int64_t end_ps = INT64_MAX;
  uint32_t function = kNoText;  // that Python called
  int64_t step = kUnknown;      // whose nodes are executed here
  int64_t puts = kUnknown;      // the step that puts work into pools here
  Times* holder = nullptr;      // what takes the time of others off its own
  size_t node = kNowhere;
};

// What a thread of a pool took on and has not begun to execute.
struct Taken {
  bool is_there = false;
  int64_t number = kUnknown;
  int64_t start_ps = 0;
};

}  // namespace

class GraphSweep {
 public:
  GraphSweep(const Space& space, bool keep, GraphWindow* window)
      : space_(space), events_(space.events()), keep_(keep), to_(*window), meanings_(space.strings().size()) {}

  void run() {
    std::vector<uint32_t> order(events_.size());
    std::iota(order.begin(), order.end(), 0u);
    const auto before = [&](uint32_t a, uint32_t b) {
      return std::tuple(events_.line[a], events_.start_ps[a], -events_.duration_ps[a]) <
             std::tuple(events_.line[b], events_.start_ps[b], -events_.duration_ps[b]);
    };
    if (!std::is_sorted(order.begin(), order.end(), before)) std::stable_sort(order.begin(), order.end(), before);
    for (const uint32_t row : order) event(row);
    finish();
  }

 private:
  void event(uint32_t row) {
    const Meaning& meaning = meaning_of(events_.name[row]);
    const int64_t start_ps = events_.start_ps[row];
    move_to(events_.line[row], start_ps);
    switch (meaning.what) {
      case GraphEvent::kAllocates:
        if (!open_.empty() && open_.back().node != kNowhere && events_.number(kRequested, row) > 0)
          nodes_[open_.back().node].taken_bytes.add(events_.number(kRequested, row));
        return;
      case GraphEvent::kBegins:
      case GraphEvent::kEnds:
        if (events_.text(kName, row) != kNoText && events_.text(kKernelType, row) != kNoText &&
            events_.number(kStepId, row) != kUnknown)
          absent(row, meaning.what == GraphEvent::kBegins);
        return;
      case GraphEvent::kPuts:
        if (events_.number(kProduces, row) != kUnknown)
          puts_.try_emplace(events_.number(kProduces, row),
                            Put{start_ps, open_.empty() ? kUnknown : open_.back().puts});
        return;
      case GraphEvent::kTakes:
        taken_ = {true, events_.number(kConsumes, row), start_ps};
        return;
      case GraphEvent::kLeaves:
        taken_ = first_ = {};
        return;
      default:
        span(row, meaning);
    }
  }

  void span(uint32_t row, const Meaning& meaning) {
    Open inside = open_.empty() ? Open() : open_.back();
    const int64_t start_ps = events_.start_ps[row];
    const int64_t duration_ps = events_.duration_ps[row];
    const int64_t step = events_.number(kId, row);
    if (meaning.what == GraphEvent::kFunction) {
      inside.function = meaning.node;
    } else if (meaning.what == GraphEvent::kRun && inside.function != kNoText && step != kUnknown) {
      inside.puts = step;
      if (known_steps_.insert(step).second) to_.steps_.push_back({step, inside.function, start_ps, events_.line[row]});
    } else if (meaning.what == GraphEvent::kProcess) {
      inside.step = inside.puts = step;
      first_ = std::exchange(taken_, {});
    } else if (meaning.what == GraphEvent::kNode && inside.step != kUnknown) {
      inside.node = place_of({inside.step, meaning.node, meaning.kind});
      queued(inside.node);
      inside.holder = node(row, inside.step, meaning, inside.holder);
    } else if (meaning.what == GraphEvent::kNode && taken_.is_there) {
      strayed_.push_back({row, meaning, taken_.number, taken_.start_ps});
    } else if (meaning.what == GraphEvent::kStage) {
      inside.node = kNowhere;
      inside.holder = count(stage(meaning.node).ran, inside.holder, duration_ps);
      if (keep_) to_.spans_.push_back({events_.line[row], kUnknown, kNoText, meaning.node, start_ps, duration_ps});
    }
    inside.end_ps = plus(start_ps, duration_ps);
    open_.push_back(inside);
  }

  Times* node(uint32_t row, int64_t step, const Meaning& meaning, Times* holder) {
    const int64_t start_ps = events_.start_ps[row];
    const int64_t duration_ps = events_.duration_ps[row];
    ran(step, meaning.node, meaning.kind, start_ps, plus(start_ps, duration_ps));
    if (keep_) to_.spans_.push_back({events_.line[row], step, meaning.node, meaning.kind, start_ps, duration_ps});
    return count(nodes_[place_of({step, meaning.node, meaning.kind})].ran, holder, duration_ps);
  }

  static Times* count(Times& times, Times* holder, int64_t duration_ps) {
    times.whole.add(duration_ps);
    times.own_ps = plus(times.own_ps, duration_ps);
    if (holder != nullptr) holder->own_ps = minus(holder->own_ps, duration_ps);
    return &times;
  }

  // The first node that a thread of a pool executes of what it took on was put there; it goes on with others itself.
  void queued(size_t place) {
    if (std::exchange(first_.is_there, false)) waits_.push_back({place, first_.number, first_.start_ps});
  }

  void absent(uint32_t row, bool begins) {
    const Key key{events_.number(kStepId, row), to_.number(space_.strings()[events_.text(kName, row)]),
                  to_.number(space_.strings()[events_.text(kKernelType, row)])};
    const auto [found, is_new] = absent_places_.try_emplace(key, absent_.size());
    if (is_new) absent_.push_back({key, {}, {}});
    Absent& one = absent_[found->second];
    (begins ? one.begun : one.done).push_back(events_.start_ps[row]);
    if (begins) queued(place_of(key));
  }

  // A result may be there, and the window be closed, before the thread that made it has told that it is done.
  void find_strayed() {
    int64_t before = kUnknown;
    for (const Strayed& one : strayed_) {
      const auto put = puts_.find(one.number);
      if (put == puts_.end() || put->second.step == kUnknown) continue;
      const int64_t step = put->second.step;
      node(one.row, step, one.meaning, nullptr);
      if (std::exchange(before, one.number) != one.number)
        waits_.push_back({place_of({step, one.meaning.node, one.meaning.kind}), one.number, one.taken_ps});
    }
  }

  void finish() {
    find_strayed();
    // before 2.20 the begin of such a node has a span on the thread that asked
    std::erase_if(to_.spans_, [&](const GraphSpan& span) {
      const auto found = absent_places_.find({span.step, span.node, span.kind});
      return found != absent_places_.end() && !absent_[found->second].begun.empty();
    });
    for (Absent& one : absent_) {
      if (one.begun.empty()) continue;
      GraphNode& node = nodes_[place_of(one.key)];
      node.ran = {};
      std::ranges::sort(one.begun);
      std::ranges::sort(one.done);
      for (size_t i = 0; i < std::min(one.begun.size(), one.done.size()); ++i) {
        if (one.done[i] < one.begun[i]) continue;
        const int64_t took_ps = minus(one.done[i], one.begun[i]);
        node.elsewhere_ps.add(took_ps);
        if (keep_) to_.spans_.push_back({-1, node.step, node.node, node.kind, one.begun[i], took_ps});
        GraphWindow::Ran& ran = ran_place(node.step, node.node);
        ran = {node.node, node.kind, one.begun[i], one.done[i], one.begun.size()};
      }
    }
    for (const Wait& wait : waits_) {
      const auto put = puts_.find(wait.number);
      if (put != puts_.end() && put->second.at_ps <= wait.until_ps)
        nodes_[wait.node].queued_ps.add(minus(wait.until_ps, put->second.at_ps));
    }
    to_.stages_.assign(stages_.begin(), stages_.end());
    functions();
  }

  void functions() {
    std::unordered_map<uint32_t, size_t> by_name;
    std::unordered_map<int64_t, size_t> by_step;
    for (const GraphStep& step : to_.steps_) {
      const auto [found, is_new] = by_name.try_emplace(step.function, to_.functions_.size());
      if (is_new) to_.functions_.push_back({step.function, {}, {}});
      to_.functions_[found->second].steps.push_back(step.step);
      by_step.emplace(step.step, found->second);
    }
    std::unordered_map<Key, size_t, HashOfKey> places;
    for (const GraphNode& node : nodes_) {
      const auto called = by_step.find(node.step);
      if (called == by_step.end()) continue;
      std::vector<GraphNode>& nodes = to_.functions_[called->second].nodes;
      const Key key{static_cast<int64_t>(called->second), node.node, node.kind};
      const auto [place, is_new] = places.try_emplace(key, nodes.size());
      if (is_new) nodes.push_back({kUnknown, node.node, node.kind, {}, {}, {}, {}});
      GraphNode& sum = nodes[place->second];
      sum.ran.whole.add(node.ran.whole);
      sum.ran.own_ps = plus(sum.ran.own_ps, node.ran.own_ps);
      sum.taken_bytes.add(node.taken_bytes);
      sum.elsewhere_ps.add(node.elsewhere_ps);
      sum.queued_ps.add(node.queued_ps);
    }
  }

  void ran(int64_t step, uint32_t node, uint32_t kind, int64_t start_ps, int64_t end_ps) {
    GraphWindow::Ran& ran = ran_place(step, node);
    if (ran.node == kNoText) {
      ran = {node, kind, start_ps, end_ps, 1};
    } else {
      ++ran.times;
    }
  }

  GraphWindow::Ran& ran_place(int64_t step, uint32_t node) {
    GraphWindow::RanInStep& all = to_.ran_[step];
    const auto [found, is_new] = all.places.try_emplace(node, all.nodes.size());
    if (is_new) all.nodes.emplace_back();
    return all.nodes[found->second];
  }

  size_t place_of(const Key& key) {
    const auto [found, is_new] = places_.try_emplace(key, nodes_.size());
    if (is_new) nodes_.push_back({key.step, key.node, key.kind, {}, {}, {}, {}});
    return found->second;
  }

  GraphStage& stage(uint32_t name) {
    const auto [found, is_new] = stage_places_.try_emplace(name, stages_.size());
    if (is_new) stages_.push_back({name, {}});
    return stages_[found->second];
  }

  void move_to(uint32_t line, int64_t start_ps) {
    if (line != line_) {
      line_ = line;
      open_.clear();
      taken_ = first_ = {};
    }
    while (!open_.empty() && open_.back().end_ps <= start_ps) open_.pop_back();
  }

  const Meaning& meaning_of(uint32_t name) {
    Meaning& meaning = meanings_[name];
    if (!meaning.is_read) {
      const NamedEvent named = graph_event(space_.strings()[name]);
      meaning = {true, named.what, to_.number(named.name), to_.number(named.kind)};
    }
    return meaning;
  }

  const Space& space_;
  const Space::Events& events_;
  const bool keep_;
  GraphWindow& to_;
  std::vector<Meaning> meanings_;  // by name
  uint32_t line_ = UINT32_MAX;
  std::vector<Open> open_;
  Taken taken_;
  Taken first_;
  std::unordered_set<int64_t> known_steps_;
  std::deque<GraphNode> nodes_;  // which stay where they are
  std::deque<GraphStage> stages_;
  std::unordered_map<Key, size_t, HashOfKey> places_;
  std::unordered_map<uint32_t, size_t> stage_places_;
  std::vector<Absent> absent_;
  std::unordered_map<Key, size_t, HashOfKey> absent_places_;
  std::vector<Wait> waits_;
  std::unordered_map<int64_t, Put> puts_;
  std::vector<Strayed> strayed_;
};

void Values::add(int64_t value) noexcept { add(Values{1, value, value, value}); }

void Values::add(const Values& others) noexcept {
  if (others.count == 0) return;
  min = count == 0 ? others.min : std::min(min, others.min);
  max = count == 0 ? others.max : std::max(max, others.max);
  count += others.count;
  sum = plus(sum, others.sum);
}

GraphWindow::GraphWindow(const Space& space, bool keep) { GraphSweep(space, keep, this).run(); }

uint32_t GraphWindow::number(std::string_view text) {
  const auto known = numbers_.find(text);
  if (known != numbers_.end()) return known->second;
  const std::string_view kept = kept_.emplace_back(text);
  texts_.push_back(kept);
  return numbers_.emplace(kept, static_cast<uint32_t>(texts_.size() - 1)).first->second;
}

GraphWindow::Ready GraphWindow::ready(uint32_t node, const RanInStep& ran, const Inputs& inputs,
                                      std::unordered_map<uint32_t, Ready>& found, int farthest) {
  const auto [known, is_new] = found.try_emplace(node);  // of a node that waits for itself nothing is known
  if (!is_new) return known->second;
  const std::vector<uint32_t>* makers = inputs(node);
  if (makers == nullptr) return {};
  Ready latest;
  for (const uint32_t maker : *makers) {
    const auto place = ran.places.find(maker);
    Ready one;
    if (place != ran.places.end()) {
      if (ran.nodes[place->second].times > 1) return {};
      one = {true, ran.nodes[place->second].end_ps};
    } else if (farthest > 0) {
      one = ready(maker, ran, inputs, found, farthest - 1);
    }
    if (one.known && (!latest.known || one.at_ps > latest.at_ps)) latest = one;
  }
  found[node] = latest;
  return latest;
}

std::vector<GraphWait> GraphWindow::waits(const GraphFunction& function, const Inputs& inputs) const {
  std::vector<GraphWait> sums;
  std::unordered_map<uint64_t, size_t> places;
  for (const int64_t step : function.steps) {
    const auto in_step = ran_.find(step);
    if (in_step == ran_.end()) continue;
    std::unordered_map<uint32_t, Ready> found;
    for (const Ran& one : in_step->second.nodes) {
      if (one.times > 1) continue;
      const Ready at = ready(one.node, in_step->second, inputs, found, kFarthest);
      if (!at.known || at.at_ps > one.start_ps) continue;
      const auto [place, is_new] = places.try_emplace(uint64_t{one.node} << 32 | one.kind, sums.size());
      if (is_new) sums.push_back({one.node, one.kind, {}});
      sums[place->second].ps.add(minus(one.start_ps, at.at_ps));
    }
  }
  return sums;
}

Wanted graph_window_wanted() {
  Wanted wanted{{"id", "step_id", "requested_bytes", "_p", "_c"}, {"name", "kernel_type"}};
  want_memory(&wanted);
  return wanted;
}

}  // namespace leadline::xla
