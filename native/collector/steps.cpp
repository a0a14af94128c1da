// Training steps, and the trace window that is counted in them.
#include <algorithm>

#include "base/steps_ended.h"
#include "collector/collector.h"

namespace leadline {

void Collector::trace_steps(int64_t wait, int64_t count, uint64_t max_events) noexcept {
  trace_from_ = wait;
  trace_to_ = wait + count;
  trace_max_events_ = max_events;
  window_.limit(max_events);
  if (wait == 0) window_.open(max_events);
}

void Collector::begin_step(int64_t number, int64_t time_ns) noexcept {
  steps_given_.store(true, std::memory_order_relaxed);
  if (number > 0) {
    const uint64_t before = static_cast<uint64_t>(number - 1) % step_ends_ns_.size();
    step_ends_ns_[before].store(time_ns, std::memory_order_relaxed);
  }
  steps_.store(number, std::memory_order_release);
  last_step_ns_.store(time_ns, std::memory_order_relaxed);
}

// The step that ran at a time; the oldest one known for times before that.
int64_t Collector::step_at(int64_t time_ns) const noexcept {
  const int64_t now = steps_.load(std::memory_order_acquire);
  int64_t step = now;
  while (step > 0 && now - step < static_cast<int64_t>(step_ends_ns_.size())) {
    const uint64_t before = static_cast<uint64_t>(step - 1) % step_ends_ns_.size();
    const int64_t ended_ns = step_ends_ns_[before].load(std::memory_order_relaxed);
    if (ended_ns == 0 || ended_ns <= time_ns) break;
    --step;
  }
  return step;
}

// One place ends steps, since an optimizer may be asked at several places in one step (twice in SAM). Where another
// place is seen again and again and that one no more, the loop is elsewhere now: warm-up and training are called from
// two lines, each epoch may be from its own. What lies between the two loops is no step.
bool Collector::ends_step(uint64_t here) noexcept {
  constexpr uint32_t kMovedOn = 2;          // on the same thread
  constexpr uint32_t kMovedToAnother = 16;  // threads that train beside each other have steps at the same time
  uint64_t place = 0;
  if (step_place_.compare_exchange_strong(place, here, std::memory_order_relaxed) || place == here) {
    other_place_.store(0, std::memory_order_relaxed);
    return true;
  }
  const bool again = other_place_.exchange(here, std::memory_order_relaxed) == here;
  const uint32_t count = again ? other_count_.load(std::memory_order_relaxed) + 1 : 1;
  other_count_.store(count, std::memory_order_relaxed);
  if (count < (tree_of(place) == tree_of(here) ? kMovedOn : kMovedToAnother)) return false;
  step_place_.store(here, std::memory_order_relaxed);
  other_place_.store(0, std::memory_order_relaxed);
  last_step_ns_.store(0, std::memory_order_relaxed);  // where this step began is not known
  return true;
}

void Collector::end_step(Lane& lane, int64_t number, int64_t time_ns) noexcept {
  book_step(lane, number, time_ns);
  g_steps_ended.fetch_add(1, std::memory_order_relaxed);
  // Behind the booking, so that the last step of the window is in it and the one before its first is not.
  const int64_t ended = steps_ended_.fetch_add(1, std::memory_order_relaxed) + 1;
  if (ended == trace_from_) window_.open(trace_max_events_);
  if (ended == trace_to_) window_.close();
  window_.decide();
}

void Collector::book_step(Lane& lane, int64_t number, int64_t time_ns) noexcept {
  const int64_t ended = number >= 0 ? number : std::max<int64_t>(steps_.load(std::memory_order_relaxed), 0);
  step_ends_ns_[static_cast<uint64_t>(ended) % step_ends_ns_.size()].store(time_ns, std::memory_order_relaxed);
  steps_.store(ended + 1, std::memory_order_release);
  const int64_t before_ns = last_step_ns_.exchange(time_ns, std::memory_order_relaxed);
  lane.step_values[StepColumn::kOperators] = lane.operators;
  lane.step_values[StepColumn::kOperator] = lane.operator_ns;
  lane.step_values[StepColumn::kBackward] = backward_ns_.load(std::memory_order_relaxed);
  StepSums step = StepSums::one(ended, time_ns - before_ns);
  lane.step_counters.border(before_ns, time_ns, lane.step_values, step);
  if (before_ns == 0) return;  // where the first step began is not known
  if (StepTable* const table = lane.tree->make_step_table(); table != nullptr) {
    table->add(step);
  } else {
    losses().count(LossKind::kInternalError, 1, "no memory for the table of steps");
  }
  const NodeId node = lane.tree->child(lane.tree->root(), lane.phase("step"));
  lane.tree->add(node, MetricKind::kCallTime, kCpuDevice, kNoStream, step.wall_ns);
  if (step.counted != 0 && step.running_ns >= 0)
    lane.tree->add(node, MetricKind::kStepRunning, kCpuDevice, kNoStream, step.running_ns);
  if (step.counted != 0 && step.core_wait_ns >= 0)
    lane.tree->add(node, MetricKind::kStepCoreWait, kCpuDevice, kNoStream, step.core_wait_ns);
  if (!window_.is_open()) return;
  TraceEvent row;
  row.start_ns = before_ns;
  row.duration_ns = time_ns - before_ns;
  row.kind = EventKind::kStep;
  row.tree = row.thread = lane.tree->index();
  row.node = node;
  row.step = static_cast<int32_t>(ended);
  lane.events.add(row);
}

}  // namespace leadline
