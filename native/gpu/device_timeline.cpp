#include "gpu/device_timeline.h"

#include <algorithm>
#include <cstdio>

namespace leadline::gpu {

std::string totals_json(const DeviceTotals& t) {
  std::array<char, 512> text{};
  std::snprintf(
      text.data(), text.size(),
      "\"busy_ns\": %lld, \"idle_ns\": %lld, \"compute_ns\": %lld, \"copy_ns\": %lld, "
      "\"communication_ns\": %lld, \"copy_under_compute_ns\": %lld, \"communication_under_compute_ns\": %lld, "
      "\"late_records\": %llu, \"late_ns\": %lld",
      static_cast<long long>(t.busy_ns), static_cast<long long>(t.idle_ns), static_cast<long long>(t.compute_ns),
      static_cast<long long>(t.copy_ns), static_cast<long long>(t.communication_ns),
      static_cast<long long>(t.copy_under_compute_ns), static_cast<long long>(t.communication_under_compute_ns),
      static_cast<unsigned long long>(t.late), static_cast<long long>(t.late_ns));
  return text.data();
}

std::string with_totals(std::string object, const std::map<std::int32_t, DeviceTotals>& totals, std::int32_t device) {
  if (const auto found = totals.find(device); found != totals.end()) {
    object.pop_back();
    object += ", " + totals_json(found->second) + "}";
  }
  return object;
}

void DeviceTimeline::add(const Interval& interval) {
  if (interval.end_ns < interval.start_ns) return;
  waiting_.push_back(interval);
  oldest_ns_ = std::min(oldest_ns_, interval.start_ns);
  if (waiting_.size() - swept_ < kMost) return;
  sort();
  sweep(kMost / 2);
}

void DeviceTimeline::sweep_before(std::int64_t time_ns) {
  if (oldest_ns_ >= time_ns) return;
  sort();
  const auto from = waiting_.begin() + static_cast<std::ptrdiff_t>(swept_);
  sweep(static_cast<std::size_t>(
      std::partition_point(from, waiting_.end(), [&](const Interval& i) { return i.start_ns < time_ns; }) - from));
}

void DeviceTimeline::finish() {
  sort();
  sweep(waiting_.size() - swept_);
  if (!started_) return;
  advance(std::max({now_ns_, running_until_ns_[0], running_until_ns_[1], running_until_ns_[2]}));  // measured classes
}

// Most of a stream's work comes in order, so what is new is nearly sorted and goes to the end.
void DeviceTimeline::sort() {
  const auto earlier = [](const Interval& a, const Interval& b) { return a.start_ns < b.start_ns; };
  const auto at = [this](std::size_t index) { return waiting_.begin() + static_cast<std::ptrdiff_t>(index); };
  if (!std::is_sorted(at(sorted_), waiting_.end(), earlier)) std::sort(at(sorted_), waiting_.end(), earlier);
  const std::size_t kept = std::max(sorted_, swept_);
  if (kept > swept_ && kept < waiting_.size() && earlier(waiting_[kept], waiting_[kept - 1]))
    std::inplace_merge(at(swept_), at(kept), waiting_.end(), earlier);
  sorted_ = waiting_.size();
}

void DeviceTimeline::sweep(std::size_t count) {
  for (const std::size_t until = swept_ + count; swept_ < until; ++swept_) {
    const Interval& work = waiting_[swept_];
    const bool measured = work.work_class != WorkClass::kUnmeasured;
    std::int64_t& until_ns = running_until_ns_[static_cast<std::size_t>(work.work_class)];
    if (!measured && !started_) {
      until_ns = std::max(until_ns, work.end_ns);
      continue;
    }
    if (!started_) {
      started_ = true;
      now_ns_ = work.start_ns;
      totals_.first_ns = work.start_ns;
    }
    if (measured && work.start_ns < now_ns_) {
      ++totals_.late;
      totals_.late_ns += std::min(now_ns_, work.end_ns) - work.start_ns;
    }
    const std::int64_t start = std::max(work.start_ns, now_ns_);
    advance(start);
    const std::int64_t busy_until = *std::max_element(running_until_ns_.begin(), running_until_ns_.end());
    if (busy_until < start && totals_.last_ns > 0 && on_gap_) {
      const std::int64_t gap_from = std::max(busy_until, totals_.first_ns);
      if (gap_from < start) on_gap_(gap_from, start, measured ? work : last_measured_);
    }
    until_ns = std::max(until_ns, work.end_ns);
    if (!measured) continue;
    last_measured_ = work;
    totals_.last_ns = std::max(totals_.last_ns, work.end_ns);
  }
  oldest_ns_ = swept_ < waiting_.size() ? waiting_[swept_].start_ns : INT64_MAX;
  if (swept_ < waiting_.size() / 2) return;
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(swept_));
  sorted_ -= swept_;
  swept_ = 0;
}

// Between two starts only ends happen, so the stretch falls into at most four parts with constant classes running.
void DeviceTimeline::advance(std::int64_t to_ns) {
  while (now_ns_ < to_ns) {
    std::int64_t next = to_ns;
    std::array<bool, kWorkClasses> running{};
    for (std::size_t c = 0; c < kWorkClasses; ++c) {
      running[c] = running_until_ns_[c] > now_ns_;
      if (running[c]) next = std::min(next, running_until_ns_[c]);
    }
    const std::int64_t part = next - now_ns_;
    const auto [compute, copy, communication, unmeasured] = running;
    if (compute) totals_.compute_ns += part;
    if (copy) totals_.copy_ns += part;
    if (communication) totals_.communication_ns += part;
    if (compute && copy) totals_.copy_under_compute_ns += part;
    if (compute && communication) totals_.communication_under_compute_ns += part;
    if (compute || copy || communication) {
      totals_.busy_ns += part;
    } else if (!unmeasured) {
      totals_.idle_ns += part;
    }
    now_ns_ = next;
  }
}

}  // namespace leadline::gpu
