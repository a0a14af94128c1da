#include "offline/flatten.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "offline/simulate.h"

namespace leadline::offline {
namespace {

using Rows = std::vector<int32_t>;

bool is(uint8_t value, Discipline discipline) noexcept { return value == static_cast<uint8_t>(discipline); }

bool launches_work(uint8_t type) noexcept { return type == static_cast<uint8_t>(EdgeType::launch); }

// Where the entries of each key begin, and behind them all; from counts that stand one place further on.
void add_up(Rows& counts) noexcept { std::partial_sum(counts.begin(), counts.end(), counts.begin()); }

class Flattening {
 public:
  explicit Flattening(const GraphTables& tables) : t_(tables) {}

  Flattened run() {
    number_tasks();
    order_lanes();
    sort_edges();
    count_conditions();
    link_lanes();
    sort_waits();
    return std::move(found_);
  }

 private:
  size_t count() const noexcept { return found_.ids.size(); }
  int32_t lane_of(int32_t row) const noexcept { return t_.lane[found_.ids[row]]; }
  double order_of(int32_t row) const noexcept { return t_.order[found_.ids[row]]; }
  uint8_t discipline_of(int32_t row) const noexcept { return t_.discipline[lane_of(row)]; }

  void number_tasks() {
    row_.assign(t_.alive.size(), -1);
    found_.ids.reserve(t_.alive.size());
    for (size_t task = 0; task < t_.alive.size(); ++task) {
      if (t_.alive[task] == 0) continue;
      row_[task] = static_cast<int32_t>(found_.ids.size());
      found_.ids.push_back(static_cast<int64_t>(task));
    }
  }

  // Rows by lane and then by order; most lanes hold long runs that are in order already.
  void order_lanes() {
    lane_begin_.assign(t_.discipline.size() + 1, 0);
    for (size_t row = 0; row < count(); ++row) ++lane_begin_[lane_of(static_cast<int32_t>(row)) + 1];
    add_up(lane_begin_);
    on_lane_.resize(count());
    Rows free(lane_begin_.begin(), lane_begin_.end() - 1);
    for (size_t row = 0; row < count(); ++row) {
      on_lane_[free[lane_of(static_cast<int32_t>(row))]++] = static_cast<int32_t>(row);
    }
    std::vector<std::pair<double, int32_t>> keyed;
    for (size_t lane = 0; lane + 1 < lane_begin_.size(); ++lane) {
      const auto begin = on_lane_.begin() + lane_begin_[lane];
      const auto end = on_lane_.begin() + lane_begin_[lane + 1];
      keyed.clear();
      for (auto at = begin; at != end; ++at) keyed.emplace_back(order_of(*at), *at);
      if (std::is_sorted(keyed.begin(), keyed.end())) continue;
      std::sort(keyed.begin(), keyed.end());
      std::transform(keyed.begin(), keyed.end(), begin, [](const auto& entry) { return entry.second; });
    }
  }

  // Work on a stream that nothing launches is issued with the task before it: (source, target), in the lanes' order.
  std::vector<std::pair<int32_t, int32_t>> inherited_launches() const {
    std::vector<uint8_t> launched(count(), 0);
    for (size_t edge = 0; edge < t_.edge_src.size(); ++edge) {
      if (launches_work(t_.edge_type[edge])) launched[row_[t_.edge_dst[edge]]] = 1;
    }
    std::vector<std::pair<int32_t, int32_t>> held;  // the task before, and the one that nothing launches
    for (size_t lane = 0; lane + 1 < lane_begin_.size(); ++lane) {
      if (!is(t_.discipline[lane], Discipline::issue)) continue;
      int32_t holder = -1;
      for (int32_t at = lane_begin_[lane]; at < lane_begin_[lane + 1]; ++at) {
        const int32_t row = on_lane_[at];
        if (launched[row] != 0) {
          holder = row;
        } else if (holder >= 0) {
          held.emplace_back(holder, row);
        }
      }
    }
    std::vector<std::pair<int32_t, int32_t>> found;
    if (held.empty()) return found;
    // sources of the launches of every holder, in the order of the edges
    Rows begin(count() + 1, 0);
    for (const auto& [holder, row] : held) begin[holder + 1] = 1;
    std::vector<uint8_t> wanted(begin.begin() + 1, begin.end());
    std::fill(begin.begin(), begin.end(), 0);
    const auto each = [&](auto&& take) {
      for (size_t edge = 0; edge < t_.edge_src.size(); ++edge) {
        const int32_t target = row_[t_.edge_dst[edge]];
        if (launches_work(t_.edge_type[edge]) && wanted[target] != 0) take(row_[t_.edge_src[edge]], target);
      }
    };
    each([&](int32_t, int32_t target) { ++begin[target + 1]; });
    add_up(begin);
    Rows sources(begin.back());
    Rows free(begin.begin(), begin.end() - 1);
    each([&](int32_t source, int32_t target) { sources[free[target]++] = source; });
    for (const auto& [holder, row] : held) {
      for (int32_t at = begin[holder]; at < begin[holder + 1]; ++at) found.emplace_back(sources[at], row);
    }
    return found;
  }

  // By source; launches of one call reach a stream in the stream's order.
  void sort_edges() {
    const auto extra = inherited_launches();
    const size_t given = t_.edge_src.size();
    const size_t all = given + extra.size();
    const auto source = [&](size_t edge) { return edge < given ? row_[t_.edge_src[edge]] : extra[edge - given].first; };
    const auto target = [&](size_t edge) {
      return edge < given ? row_[t_.edge_dst[edge]] : extra[edge - given].second;
    };
    found_.edge_offset.assign(count() + 1, 0);
    for (size_t edge = 0; edge < all; ++edge) ++found_.edge_offset[source(edge) + 1];
    add_up(found_.edge_offset);
    Rows sorted(all);
    Rows free(found_.edge_offset.begin(), found_.edge_offset.end() - 1);
    for (size_t edge = 0; edge < all; ++edge) sorted[free[source(edge)]++] = static_cast<int32_t>(edge);
    const auto before = [&](int32_t one, int32_t other) { return order_of(target(one)) < order_of(target(other)); };
    for (size_t row = 0; row < count(); ++row) {
      const int32_t begin = found_.edge_offset[row], end = found_.edge_offset[row + 1];
      if (end - begin > 1) std::stable_sort(sorted.begin() + begin, sorted.begin() + end, before);
    }
    found_.edge_dst.resize(all);
    found_.edge_type.resize(all);
    found_.edge_latency_ns.resize(all);
    for (size_t at = 0; at < all; ++at) {
      const auto edge = static_cast<size_t>(sorted[at]);
      found_.edge_dst[at] = target(edge);
      found_.edge_type[at] = edge < given ? t_.edge_type[edge] : static_cast<uint8_t>(EdgeType::launch);
      found_.edge_latency_ns[at] = edge < given ? t_.edge_latency_ns[edge] : 0;
    }
  }

  void count_conditions() {
    found_.launches.assign(count(), 0);
    found_.pending.assign(count(), 0);
    for (size_t at = 0; at < found_.edge_dst.size(); ++at) {
      const int32_t row = found_.edge_dst[at];
      ++found_.pending[row];
      if (launches_work(found_.edge_type[at]) && is(discipline_of(row), Discipline::issue)) ++found_.launches[row];
    }
    for (size_t row = 0; row < count(); ++row) {
      if (!is(discipline_of(static_cast<int32_t>(row)), Discipline::ready)) ++found_.pending[row];
    }
  }

  void link_lanes() {
    found_.next_on_lane.assign(count(), -1);
    for (size_t lane = 0; lane + 1 < lane_begin_.size(); ++lane) {
      const bool ordered = is(t_.discipline[lane], Discipline::order);
      const bool issued = is(t_.discipline[lane], Discipline::issue);
      for (int32_t at = lane_begin_[lane]; at < lane_begin_[lane + 1]; ++at) {
        const int32_t row = on_lane_[at];
        if (ordered && at + 1 < lane_begin_[lane + 1]) found_.next_on_lane[row] = on_lane_[at + 1];
        if ((ordered && at == lane_begin_[lane]) || (issued && found_.launches[row] == 0))
          found_.initial.push_back(row);
      }
    }
  }

  void sort_waits() {
    found_.wait_offset.assign(count() + 1, 0);
    for (const int32_t task : t_.wait_task) ++found_.wait_offset[row_[task] + 1];
    add_up(found_.wait_offset);
    found_.wait_lane.resize(t_.wait_task.size());
    Rows free(found_.wait_offset.begin(), found_.wait_offset.end() - 1);
    for (size_t at = 0; at < t_.wait_task.size(); ++at)
      found_.wait_lane[free[row_[t_.wait_task[at]]]++] = t_.wait_lane[at];
  }

  const GraphTables& t_;
  Flattened found_;
  Rows row_;         // of every task, -1 for one that is gone
  Rows lane_begin_;  // in on_lane_, and behind the last
  Rows on_lane_;
};

bool within(std::span<const int32_t> values, size_t limit) noexcept {
  return std::all_of(values.begin(), values.end(),
                     [&](int32_t value) { return value >= 0 && static_cast<size_t>(value) < limit; });
}

}  // namespace

const char* problem(const GraphTables& tables) {
  const size_t tasks = tables.alive.size();
  if (tables.lane.size() != tasks || tables.order.size() != tasks) return "task columns differ in length";
  const size_t edges = tables.edge_src.size();
  if (tables.edge_dst.size() != edges || tables.edge_type.size() != edges || tables.edge_latency_ns.size() != edges) {
    return "edge columns differ in length";
  }
  if (tables.wait_task.size() != tables.wait_lane.size()) return "wait columns differ in length";
  if (!within(tables.lane, tables.discipline.size())) return "a task is on no lane";
  if (!within(tables.edge_src, tasks) || !within(tables.edge_dst, tasks) || !within(tables.wait_task, tasks)) {
    return "an edge or a wait names no task";
  }
  const auto gone = [&](int32_t task) { return tables.alive[task] == 0; };
  if (std::any_of(tables.edge_src.begin(), tables.edge_src.end(), gone) ||
      std::any_of(tables.edge_dst.begin(), tables.edge_dst.end(), gone) ||
      std::any_of(tables.wait_task.begin(), tables.wait_task.end(), gone)) {
    return "an edge leads to a removed task; connect tasks before removing them, not after";
  }
  return nullptr;
}

Flattened flatten(const GraphTables& tables) { return Flattening(tables).run(); }

}  // namespace leadline::offline
