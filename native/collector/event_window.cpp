#include "collector/event_window.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <mutex>
#include <new>
#include <utility>

#include "base/abandon.h"
#include "base/clock.h"

namespace leadline {
namespace {

// What it could not tell, the recorder finds out itself, later.
void tell(const std::string& path) noexcept {
  const int descriptor = open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return;
  [[maybe_unused]] const ssize_t written = write(descriptor, "1", 1);
  close(descriptor);
}

}  // namespace

bool EventLane::add(const TraceEvent& event, bool asked_inside) noexcept {
  if (!asked_inside && !window_->is_open() && !window_->covers(event.start_ns)) return false;
  if (portion_ == 0) portion_ = window_->take_portion();
  const bool kept = portion_ != 0 && (PlainEvent::fits(event) ? plain_.emplace_back(PlainEvent::of(event)) != nullptr
                                                              : whole_.emplace_back(event) != nullptr);
  if (!kept) {
    window_->losses_->count(LossKind::kEventsDropped, 1,
                            "the trace window reached its limit of events; trace fewer steps or raise the limit");
    return false;
  }
  --portion_;
  return true;
}

void EventWindow::open(std::uint64_t max_events) noexcept {
  if (!announced_.empty()) tell(announced_);
  limit_.store(max_events + taken_back_.load(std::memory_order_relaxed), std::memory_order_relaxed);
  opened_.store(true, std::memory_order_relaxed);
  from_ns_.store(now_ns(), std::memory_order_relaxed);
  until_ns_.store(std::numeric_limits<std::int64_t>::max(), std::memory_order_relaxed);
  open_.store(true, std::memory_order_relaxed);
  if (shared_ != nullptr) {
    shared_->until_ns.store(kNotYet, std::memory_order_relaxed);
    shared_->from_ns.store(from_ns_.load(std::memory_order_relaxed), std::memory_order_relaxed);
  }
}

void EventWindow::close() noexcept {
  if (!open_.exchange(false, std::memory_order_relaxed)) return;
  const std::int64_t time_ns = now_ns();
  until_ns_.store(time_ns, std::memory_order_relaxed);
  if (shared_ != nullptr) shared_->until_ns.store(time_ns, std::memory_order_relaxed);
}

void EventWindow::take_back() noexcept {
  told_from_ns_.store(now_ns(), std::memory_order_relaxed);
  const std::uint64_t kept = taken_.load(std::memory_order_relaxed);
  const std::uint64_t before = taken_back_.exchange(kept, std::memory_order_relaxed);
  limit_.fetch_add(kept - before, std::memory_order_relaxed);
}

void EventWindow::decide() noexcept {
  following_.store(false, std::memory_order_relaxed);
  if (shared_ != nullptr) shared_->decides.store(1, std::memory_order_relaxed);
}

bool EventWindow::share(const std::string& path, const std::string& parent_path) noexcept {
  if (!parent_path.empty()) follow(published_times(parent_path));
  shared_ = publish_times(path);
  if (shared_ != nullptr && is_open() && !following_.load(std::memory_order_relaxed)) {
    shared_->from_ns.store(from_ns_.load(std::memory_order_relaxed), std::memory_order_relaxed);
  }
  return shared_ != nullptr;
}

const WindowTimes* EventWindow::nearest_leader() const noexcept {
  for (const SharedTimes& ancestor : ancestors_) {
    if (ancestor == nullptr) return nullptr;
    if (ancestor->decides.load(std::memory_order_relaxed) != 0) return ancestor.get();
  }
  return nullptr;
}

void EventWindow::follow(SharedTimes ancestor) noexcept {
  if (ancestor == nullptr) return;
  for (std::size_t at = ancestors_.size() - 1; at > 0; --at) ancestors_[at] = std::move(ancestors_[at - 1]);
  ancestors_[0] = std::move(ancestor);
  following_.store(true, std::memory_order_relaxed);
}

std::uint32_t EventWindow::take_portion() noexcept {
  const std::uint64_t limit = limit_.load(std::memory_order_relaxed);
  std::uint64_t taken = taken_.load(std::memory_order_relaxed);
  for (;;) {
    if (taken >= limit) return 0;
    const std::uint64_t portion = std::min<std::uint64_t>(kPortion, limit - taken);
    if (taken_.compare_exchange_weak(taken, taken + portion, std::memory_order_relaxed)) {
      return static_cast<std::uint32_t>(portion);
    }
  }
}

EventLane& EventWindow::create_lane() {
  const std::lock_guard guard(lock_);
  const auto* lane = lanes_->emplace_back(std::make_unique<EventLane>(*this));
  if (lane == nullptr) throw std::bad_alloc();
  return **lane;
}

TraceEventExtent EventWindow::extent() const {
  TraceEventExtent extent{told_from_ns_.load(std::memory_order_relaxed), {}};
  const std::uint32_t lanes = lanes_->size();
  extent.counts.reserve(std::size_t{2} * lanes);
  for (std::uint32_t i = 0; i < lanes; ++i) {
    extent.counts.push_back((*lanes_)[i]->plain_.size());
    extent.counts.push_back((*lanes_)[i]->whole_.size());
  }
  return extent;
}

void EventWindow::for_each_of(const TraceEventExtent& extent, const std::function<void(const TraceEvent&)>& f) const {
  for (std::uint32_t i = 0; i < extent.counts.size() / 2; ++i) {
    const EventLane& lane = *(*lanes_)[i];
    for (std::uint32_t at = 0; at < extent.counts[std::size_t{2} * i]; ++at) {
      if (lane.plain_[at].start_ns >= extent.from_ns) f(lane.plain_[at].whole());
    }
    for (std::uint32_t at = 0; at < extent.counts[std::size_t{2} * i + 1]; ++at) {
      if (lane.whole_[at].start_ns >= extent.from_ns) f(lane.whole_[at]);
    }
  }
}

std::uint64_t EventWindow::size() const noexcept {
  std::uint64_t events = 0;
  const std::uint32_t lanes = lanes_->size();
  for (std::uint32_t i = 0; i < lanes; ++i) events += (*lanes_)[i]->size();
  return events;
}

std::uint64_t EventWindow::changes() const noexcept { return size() + taken_back_.load(std::memory_order_relaxed); }

std::size_t EventWindow::held_bytes() const noexcept {
  std::size_t bytes = lanes_->held_bytes();
  const std::uint32_t lanes = lanes_->size();
  for (std::uint32_t i = 0; i < lanes; ++i) bytes += sizeof(EventLane) + (*lanes_)[i]->held_bytes();
  return bytes;
}

void EventWindow::clear() noexcept {
  forget_events();
  lanes_.emplace();
  shared_.reset();
  for (SharedTimes& ancestor : ancestors_) ancestor.reset();
  following_.store(false, std::memory_order_relaxed);
}

void EventWindow::after_fork() noexcept {
  forget_events();
  abandon(lanes_, std::in_place);
  follow(std::exchange(shared_, nullptr));
  following_.store(ancestors_[0] != nullptr, std::memory_order_relaxed);
}

void EventWindow::forget_events() noexcept {
  lock_.reset();
  open_.store(false, std::memory_order_relaxed);
  opened_.store(false, std::memory_order_relaxed);
  from_ns_.store(0, std::memory_order_relaxed);
  until_ns_.store(0, std::memory_order_relaxed);
  taken_.store(0, std::memory_order_relaxed);
  taken_back_.store(0, std::memory_order_relaxed);
  told_from_ns_.store(kEver, std::memory_order_relaxed);
}

}  // namespace leadline
