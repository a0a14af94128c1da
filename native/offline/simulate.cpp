#include "offline/simulate.h"

#include <algorithm>
#include <limits>
#include <queue>

namespace leadline::offline {
namespace {

constexpr int64_t kUnset = -1;
constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

// (time, task), or (time, task count + lane) for a lane's decision; smallest first, so ties go in task order.
struct Item {
  int64_t time_ns;
  int32_t id;
  bool operator>(const Item& other) const noexcept {
    return time_ns != other.time_ns ? time_ns > other.time_ns : id > other.id;
  }
};

struct Candidate {
  double priority;
  int64_t ready_ns;
  int32_t task;
  bool operator>(const Candidate& other) const noexcept {
    if (priority != other.priority) return priority > other.priority;
    if (ready_ns != other.ready_ns) return ready_ns > other.ready_ns;
    return task > other.task;
  }
};

template <typename T>
using MinHeap = std::priority_queue<T, std::vector<T>, std::greater<T>>;

struct Event {
  int32_t task;
  bool is_end;
};

struct Ended {
  int32_t task;
  int64_t end_ns;
};

struct LaneState {
  int32_t tail = -1;  // last task issued to a stream
  int32_t last = -1;  // last task that ended on a lane that chooses
  int64_t free_at_ns = 0;
  bool running = false;
  MinHeap<Candidate> candidates;
};

class Machine {
 public:
  Machine(const Program& program, bool by_priority) : p_(program), by_priority_(by_priority) {
    const size_t count = p_.lane.size();
    ready_.assign(p_.earliest_ns.begin(), p_.earliest_ns.end());
    pending_.assign(p_.pending.begin(), p_.pending.end());
    launches_.assign(p_.launches.begin(), p_.launches.end());
    next_.assign(p_.next_on_lane.begin(), p_.next_on_lane.end());
    drained_.assign(count, kUnset);
    before_.assign(count, -1);
    wait_left_.assign(count, 0);
    wait_until_.assign(count, 0);
    watcher_of_.assign(count, -1);
    lanes_.resize(p_.discipline.size());
    members_.resize(p_.group_size.size());
    awaited_.resize(p_.wait_lane.size(), -1);
    watchers_.reserve(p_.wait_lane.size());
    log_.reserve(2 * count);
    result_.start_ns.assign(count, kUnset);
    result_.end_ns.assign(count, kUnset);
    result_.cause.assign(count, -1);
    result_.end_cause.assign(count, -1);
    result_.from_start.assign(count, 0);
  }

  Run run() {
    const auto count = static_cast<int32_t>(p_.lane.size());
    for (int32_t task = 0; task < count; ++task) {
      if (pending_[task] == 0) heap_.push({ready_[task], task});
    }
    for (const int32_t task : p_.initial) {
      if (discipline(task) == Discipline::issue) {
        issue(task);
      } else {
        release(task, ready_[task], -1, false);
      }
    }
    while (!heap_.empty()) {
      const Item item = heap_.top();
      heap_.pop();
      now_ = std::max(now_, item.time_ns);  // an edge of negative latency never leads into the past
      if (item.id >= count) {
        decide(item.id - count);
      } else if (discipline(item.id) == Discipline::ready) {
        offer(item.id);
      } else {
        begin(item.id);
      }
    }
    compute_slack();
    return std::move(result_);
  }

 private:
  Discipline discipline(int32_t task) const noexcept { return static_cast<Discipline>(p_.discipline[p_.lane[task]]); }

  // One condition of the task is met.
  void release(int32_t task, int64_t time_ns, int32_t cause, bool from_start) {
    if (time_ns > ready_[task]) {
      ready_[task] = time_ns;
      result_.cause[task] = cause;
      result_.from_start[task] = from_start ? 1 : 0;
    }
    if (--pending_[task] == 0) heap_.push({ready_[task], task});
  }

  // Put a task at the end of its stream's queue.
  void issue(int32_t task) {
    LaneState& lane = lanes_[p_.lane[task]];
    const int32_t previous = lane.tail;
    lane.tail = task;
    before_[task] = previous;
    if (previous < 0) {
      release(task, ready_[task], -1, false);
      return;
    }
    next_[previous] = task;
    if (result_.end_ns[previous] != kUnset) {
      release(task, result_.end_ns[previous] + p_.gap_ns[previous], previous, false);
    }
  }

  // Start a task now and find out when it ends.
  void begin(int32_t task) {
    result_.start_ns[task] = now_;
    log_.push_back({task, false});
    for (int32_t edge = p_.edge_offset[task]; edge < p_.edge_offset[task + 1]; ++edge) {
      const auto type = static_cast<EdgeType>(p_.edge_type[edge]);
      if (!counts_from_start(type)) continue;
      const int32_t target = p_.edge_dst[edge];
      release(target, now_ + p_.edge_latency_ns[edge], task, true);
      if (type == EdgeType::launch && discipline(target) == Discipline::issue && --launches_[target] == 0) {
        issue(target);
      }
    }
    if (p_.wait_offset[task] != p_.wait_offset[task + 1]) {
      synchronise(task);
    } else if (const int32_t group = p_.group[task]; group >= 0) {
      std::vector<int32_t>& met = members_[group];
      met.push_back(task);
      if (static_cast<int32_t>(met.size()) == p_.group_size[group]) {
        for (const int32_t member : met) {
          result_.end_cause[member] = member != task ? task : -1;
          ended_.push_back({member, now_ + p_.duration_ns[member]});
        }
        complete();
      }
    } else {
      ended_.push_back({task, now_ + p_.duration_ns[task]});
      complete();
    }
  }

  void synchronise(int32_t task) {
    wait_until_[task] = now_;
    for (int32_t at = p_.wait_offset[task]; at < p_.wait_offset[task + 1]; ++at) {
      const int32_t tail = lanes_[p_.wait_lane[at]].tail;
      awaited_[at] = tail;
      if (tail < 0) continue;
      if (result_.end_ns[tail] == kUnset) {
        ++wait_left_[task];
        watch(tail, task);
      } else if (drained_[tail] > wait_until_[task]) {
        wait_until_[task] = drained_[tail];
        result_.end_cause[task] = tail;
      }
    }
    if (wait_left_[task] == 0) {
      ended_.push_back({task, wait_until_[task] + p_.duration_ns[task]});
      complete();
    }
  }

  // Watchers of a task form a list in the order in which they came.
  struct Watcher {
    int32_t task;
    int32_t next;
  };
  void watch(int32_t awaited, int32_t task) {
    const auto added = static_cast<int32_t>(watchers_.size());
    watchers_.push_back({task, -1});
    int32_t* link = &watcher_of_[awaited];
    while (*link >= 0) link = &watchers_[*link].next;
    *link = added;
  }

  // The ends of the tasks in ended_ are known; synchronisations that they end follow.
  void complete() {
    for (size_t at = 0; at < ended_.size(); ++at) {
      const auto [task, end_ns] = ended_[at];
      result_.end_ns[task] = end_ns;
      ++result_.finished;
      log_.push_back({task, true});
      const int32_t before = before_[task];
      drained_[task] = before < 0 ? end_ns : std::max(end_ns, drained_[before]);
      for (int32_t edge = p_.edge_offset[task]; edge < p_.edge_offset[task + 1]; ++edge) {
        if (!counts_from_start(static_cast<EdgeType>(p_.edge_type[edge]))) {
          release(p_.edge_dst[edge], end_ns + p_.edge_latency_ns[edge], task, false);
        }
      }
      if (discipline(task) == Discipline::ready) {
        LaneState& lane = lanes_[p_.lane[task]];
        lane.running = false;
        lane.free_at_ns = end_ns + p_.gap_ns[task];
        lane.last = task;
        if (!lane.candidates.empty()) ask(p_.lane[task]);
      } else if (next_[task] >= 0) {
        release(next_[task], end_ns + p_.gap_ns[task], task, false);
      }
      for (int32_t link = watcher_of_[task]; link >= 0; link = watchers_[link].next) {
        const int32_t watcher = watchers_[link].task;
        if (drained_[task] > wait_until_[watcher]) {
          wait_until_[watcher] = drained_[task];
          result_.end_cause[watcher] = task;
        }
        if (--wait_left_[watcher] == 0) {
          ended_.push_back({watcher, wait_until_[watcher] + p_.duration_ns[watcher]});
        }
      }
    }
    ended_.clear();
  }

  // A task of a lane that chooses became ready.
  void offer(int32_t task) {
    LaneState& lane = lanes_[p_.lane[task]];
    lane.candidates.push({by_priority_ ? p_.priority[task] : 0.0, now_, task});
    if (!lane.running) ask(p_.lane[task]);
  }

  void ask(int32_t lane) {
    heap_.push({std::max(now_, lanes_[lane].free_at_ns), static_cast<int32_t>(p_.lane.size()) + lane});
  }

  // A lane that is free picks its next task; asked more than once at one moment it decides once.
  void decide(int32_t number) {
    LaneState& lane = lanes_[number];
    if (lane.running || lane.candidates.empty() || lane.free_at_ns > now_) return;
    const Candidate chosen = lane.candidates.top();
    lane.candidates.pop();
    if (lane.last >= 0) {
      next_[lane.last] = chosen.task;
      if (lane.free_at_ns > chosen.ready_ns) {
        result_.cause[chosen.task] = lane.last;
        result_.from_start[chosen.task] = 0;
      }
    }
    lane.running = true;
    begin(chosen.task);
  }

  // Walk everything that happened backwards: how late may each start and end be, all order kept as it was?
  void compute_slack() {
    const size_t count = p_.lane.size();
    int64_t horizon = 0;
    for (const int64_t end_ns : result_.end_ns) horizon = std::max(horizon, end_ns);
    std::vector<int64_t> latest_start(count, kNever);
    std::vector<int64_t> latest_end(count, horizon);
    for (auto event = log_.rbegin(); event != log_.rend(); ++event) {
      const int32_t task = event->task;
      int64_t& start = latest_start[task];
      int64_t& end = latest_end[task];
      for (int32_t edge = p_.edge_offset[task]; edge < p_.edge_offset[task + 1]; ++edge) {
        const int32_t target = p_.edge_dst[edge];
        const bool from_start = counts_from_start(static_cast<EdgeType>(p_.edge_type[edge]));
        if (from_start == event->is_end || result_.start_ns[target] == kUnset) continue;
        int64_t& bound = from_start ? start : end;
        bound = std::min(bound, latest_start[target] - p_.edge_latency_ns[edge]);
      }
      if (!event->is_end) continue;
      if (const int32_t following = next_[task]; following >= 0 && result_.start_ns[following] != kUnset) {
        end = std::min(end, latest_start[following] - p_.gap_ns[task]);
      }
      const int64_t arrival = end - p_.duration_ns[task];
      for (int32_t at = p_.wait_offset[task]; at < p_.wait_offset[task + 1]; ++at) {
        if (awaited_[at] >= 0) latest_end[awaited_[at]] = std::min(latest_end[awaited_[at]], arrival);
      }
      if (p_.group[task] >= 0) {
        for (const int32_t member : members_[p_.group[task]]) {
          latest_start[member] = std::min(latest_start[member], arrival);
        }
      }
      start = std::min(start, arrival);
    }
    result_.slack_ns.assign(count, 0);
    for (size_t task = 0; task < count; ++task) {
      if (result_.start_ns[task] != kUnset && latest_start[task] != kNever) {
        result_.slack_ns[task] = latest_start[task] - result_.start_ns[task];
      }
    }
  }

  const Program& p_;
  const bool by_priority_;
  Run result_;
  std::vector<int64_t> ready_;
  std::vector<int32_t> pending_;
  std::vector<int32_t> launches_;
  std::vector<int32_t> next_;
  std::vector<int64_t> drained_;  // end of a task and of all before it on its stream
  std::vector<int32_t> before_;   // task before on the stream, as issued
  std::vector<int32_t> wait_left_;
  std::vector<int64_t> wait_until_;
  std::vector<int32_t> watcher_of_;
  std::vector<Watcher> watchers_;
  std::vector<int32_t> awaited_;  // parallel to wait_lane
  std::vector<std::vector<int32_t>> members_;
  std::vector<LaneState> lanes_;
  std::vector<Ended> ended_;
  std::vector<Event> log_;
  MinHeap<Item> heap_;
  int64_t now_ = 0;
};

bool within(std::span<const int32_t> values, int32_t low, size_t end) noexcept {
  return std::all_of(values.begin(), values.end(),
                     [=](int32_t value) { return value >= low && (value < 0 || static_cast<size_t>(value) < end); });
}

bool is_offsets(std::span<const int32_t> offsets, size_t rows, size_t values) noexcept {
  return offsets.size() == rows + 1 && offsets.front() == 0 && static_cast<size_t>(offsets.back()) == values &&
         std::is_sorted(offsets.begin(), offsets.end());
}

}  // namespace

Run run(const Program& program, bool by_priority) { return Machine(program, by_priority).run(); }

const char* problem(const Program& p) noexcept {
  const size_t count = p.lane.size();
  const size_t lanes = p.discipline.size();
  for (const size_t length : {p.duration_ns.size(), p.gap_ns.size(), p.earliest_ns.size(), p.group.size(),
                              p.priority.size(), p.next_on_lane.size(), p.launches.size(), p.pending.size()}) {
    if (length != count) return "the task columns differ in length";
  }
  if (p.edge_dst.size() != p.edge_type.size() || p.edge_dst.size() != p.edge_latency_ns.size()) {
    return "the edge columns differ in length";
  }
  if (!is_offsets(p.edge_offset, count, p.edge_dst.size()) || !is_offsets(p.wait_offset, count, p.wait_lane.size())) {
    return "the offsets do not cover their rows";
  }
  if (!within(p.lane, 0, lanes) || !within(p.wait_lane, 0, lanes) || !within(p.edge_dst, 0, count) ||
      !within(p.initial, 0, count) || !within(p.next_on_lane, -1, count) || !within(p.group, -1, p.group_size.size())) {
    return "an index points outside its table";
  }
  return nullptr;
}

}  // namespace leadline::offline
