// The trace window: single events, kept only while it is open and only up to a limit for the whole process.
//
// Each thread writes to its own lane without locks; the limit is one shared counter from which lanes take portions.
// What does not fit counts events_dropped. Events stay until clear(), across several openings.
//
// Until this process decides for itself, the window is open when that of the nearest deciding ancestor is.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "base/chunked_array.h"
#include "base/losses.h"
#include "base/spin_lock.h"
#include "cct/trace_event.h"
#include "collector/plain_event.h"
#include "collector/window_times.h"

namespace leadline {

class EventWindow;

// The events of one thread (including device work that this thread reports). Only that thread adds.
class EventLane {
 public:
  explicit EventLane(EventWindow& window) noexcept : window_(&window) {}

  // False when the window is closed and was not open at the event's start (no loss), or full (a loss). `asked_inside`:
  // it began later than what asked for it, which the window covers.
  bool add(const TraceEvent& event, bool asked_inside = false) noexcept;

  std::uint64_t size() const noexcept { return std::uint64_t{plain_.size()} + whole_.size(); }
  std::size_t held_bytes() const noexcept { return plain_.held_bytes() + whole_.held_bytes(); }

 private:
  friend class EventWindow;
  EventWindow* window_;
  std::uint32_t portion_ = 0;  // events this lane may still add without asking
  ChunkedArray<PlainEvent> plain_;
  ChunkedArray<TraceEvent> whole_;  // those that are not plain
};

class EventWindow final : public TraceEventSource {
 public:
  explicit EventWindow(LossCounters& losses = leadline::losses()) noexcept : losses_(&losses) {}

  // `max_events` for the whole process, those of earlier openings included.
  void open(std::uint64_t max_events) noexcept;
  void close() noexcept;
  // Whether something that began then belongs to the last opening. Device work is reported after it has run, so what
  // comes when the window has closed may belong to it, and what comes at its beginning may not.
  bool covers(std::int64_t start_ns) const noexcept {
    if (start_ns >= from_ns_.load(std::memory_order_relaxed) && start_ns < until_ns_.load(std::memory_order_relaxed)) {
      return true;
    }
    const WindowTimes* followed = leader();
    return followed != nullptr && followed->covers(start_ns);
  }
  // Whether it began in the last opening or later.
  bool opened_before(std::int64_t start_ns) const noexcept {
    if (opened_.load(std::memory_order_relaxed) && start_ns >= from_ns_.load(std::memory_order_relaxed)) return true;
    const WindowTimes* followed = leader();
    return followed != nullptr && start_ns >= followed->from_ns.load(std::memory_order_relaxed);
  }
  bool is_open() const noexcept {
    if (open_.load(std::memory_order_relaxed)) return true;
    const WindowTimes* followed = leader();
    return followed != nullptr && followed->is_open();
  }
  bool was_opened() const noexcept override {
    if (opened_.load(std::memory_order_relaxed)) return true;
    const WindowTimes* followed = leader();
    return followed != nullptr && followed->from_ns.load(std::memory_order_relaxed) != kNotYet;
  }

  // Most events of this process where an ancestor opens the window.
  void limit(std::uint64_t max_events) noexcept { limit_.store(max_events, std::memory_order_relaxed); }
  // From now on this process follows nobody, and its children follow it. Cheap enough for every step.
  void decide() noexcept;
  // Children find the window's times at `path`; those of the process at `parent_path` are followed, where there are
  // any. False when children cannot see them. No other thread may use the window meanwhile.
  bool share(const std::string& path, const std::string& parent_path) noexcept;

  // "1" is written to this file when the window opens: whoever records beside this process begins at once. It is opened
  // then and not before, since programs close descriptors that they do not know. No other thread may use the window.
  void announce_to(const std::string& path) { announced_ = path; }

  // Of what was kept so far nothing is told any more, and it does not count against the limit: the window was opened
  // for a step that turned out not to be wanted. Its memory is freed by clear().
  void take_back() noexcept;

  // A lane for the calling thread, which keeps the reference until clear(). Throws std::bad_alloc.
  EventLane& create_lane();

  TraceEventExtent extent() const override;
  void for_each_of(const TraceEventExtent& extent, const std::function<void(const TraceEvent&)>& f) const override;
  std::uint64_t size() const noexcept;
  std::uint64_t changes() const noexcept override;
  std::size_t held_bytes() const noexcept;

  // For a new session: forgets events, lanes and whom to follow; no other thread may use the window meanwhile.
  void clear() noexcept;
  // For a fork child: forgets events and lanes, and follows the parent and whom it followed.
  void after_fork() noexcept;

 private:
  friend class EventLane;
  static constexpr std::uint32_t kPortion = 64;
  static constexpr std::int64_t kEver = std::numeric_limits<std::int64_t>::min();
  static constexpr std::size_t kAncestors = 4;  // worker, fork server, training process, launcher
  std::uint32_t take_portion() noexcept;
  // The nearest ancestor that decides; null where none does, or this process does itself.
  const WindowTimes* leader() const noexcept {
    return following_.load(std::memory_order_relaxed) ? nearest_leader() : nullptr;
  }
  const WindowTimes* nearest_leader() const noexcept;
  void forget_events() noexcept;
  void follow(SharedTimes ancestor) noexcept;

  using Lanes = ChunkedArray<std::unique_ptr<EventLane>, 16>;

  LossCounters* losses_;
  // Asked at every event; beside each other.
  std::atomic<bool> open_{false};
  std::atomic<bool> following_{false};
  std::atomic<bool> opened_{false};
  std::atomic<std::int64_t> from_ns_{0};
  std::atomic<std::int64_t> until_ns_{0};
  std::atomic<std::uint64_t> limit_{0};
  std::atomic<std::uint64_t> taken_{0};
  std::atomic<std::uint64_t> taken_back_{0};       // of these, how many were taken back
  std::atomic<std::int64_t> told_from_ns_{kEver};  // events that began before were taken back
  std::string announced_;
  SharedTimes shared_;                             // this process's own, for its children
  std::array<SharedTimes, kAncestors> ancestors_;  // nearest first
  SpinLock lock_;                                  // lanes are created one at a time
  std::optional<Lanes> lanes_{std::in_place};      // always there; clear() puts a new one in its place
};

}  // namespace leadline
