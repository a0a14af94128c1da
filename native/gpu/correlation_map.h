// From the vendor's correlation id to where the call was made, and until when everything is known that devices did.
//
// Threads write launches into their logs (launch_log.h); the thread that folds records collects them into a table of
// its own. A launch whose record has come stays readable for kReadable further launches: a graph launch is asked for
// once per node.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "gpu/launch_log.h"
#include "leadline/monitor.h"

namespace leadline::gpu {

struct Launch {
  leadline_context context = 0;
  std::int64_t start_ns = 0;  // begin of the API call
  std::uint32_t thread = 0;   // which thread called: its place in the log
  std::uint8_t kind = 0;      // leadline_gpu_kind
  std::uint32_t outer = 0;    // id of the runtime call around this driver call; 0: none, or the same
  bool paused = false;        // made while measuring rested: its work belongs nowhere
};

// Rows of a table by id: open addressing, half full at most.
class RowsById {
 public:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  RowsById() : slots_(1u << 13) {}

  std::uint32_t find(std::uint32_t id) const noexcept {
    for (std::size_t at = home(id);; at = next(at)) {
      if (slots_[at].row == kNone) return kNone;
      if (slots_[at].id == id) return slots_[at].row;
    }
  }
  // An id that is not there.
  void insert(std::uint32_t id, std::uint32_t row) {
    if (2 * (count_ + 1) > slots_.size()) grow();
    put(id, row);
    ++count_;
  }
  void erase(std::uint32_t id) noexcept {
    std::size_t hole = home(id);
    while (slots_[hole].row != kNone && slots_[hole].id != id) hole = next(hole);
    if (slots_[hole].row == kNone) return;
    --count_;
    // What lies behind and may not be found across the hole moves into it.
    for (std::size_t at = next(hole); slots_[at].row != kNone; at = next(at)) {
      const std::size_t wanted = home(slots_[at].id);
      if (((at - wanted) & (slots_.size() - 1)) < ((at - hole) & (slots_.size() - 1))) continue;
      slots_[hole] = slots_[at];
      hole = at;
    }
    slots_[hole].row = kNone;
  }
  std::size_t held_bytes() const noexcept { return slots_.size() * sizeof(Slot); }

 private:
  struct Slot {
    std::uint32_t id = 0;
    std::uint32_t row = kNone;
  };
  std::size_t home(std::uint32_t id) const noexcept { return (id * 0x9e3779b1u >> 7) & (slots_.size() - 1); }
  std::size_t next(std::size_t at) const noexcept { return (at + 1) & (slots_.size() - 1); }
  void put(std::uint32_t id, std::uint32_t row) noexcept {
    std::size_t at = home(id);
    while (slots_[at].row != kNone) at = next(at);
    slots_[at] = {id, row};
  }
  void grow() {
    std::vector<Slot> larger(2 * slots_.size());
    larger.swap(slots_);
    for (const Slot& slot : larger) {
      if (slot.row != kNone) put(slot.id, slot.row);
    }
  }
  std::vector<Slot> slots_;
  std::size_t count_ = 0;
};

class CorrelationMap {
 public:
  static constexpr std::size_t kReadable = 1u << 16;
  static constexpr std::size_t kMost = 1u << 20;  // launches in the table; the oldest are given up first
  static constexpr std::size_t kMostPlaces = 1u << 18;
  // A launch without a record for so long will have none: CUPTI dropped it.
  static constexpr std::int64_t kLostNs = 30'000'000'000;
  // Of a replayed graph no further node comes.
  static constexpr std::int64_t kGraphRestNs = 5'000'000'000;
  // Clocks of host and device are compared, not the same.
  static constexpr std::int64_t kClockSlackNs = 1'000'000;

  CorrelationMap();

  // For the thread that writes. Held by threads, which may outlive the map.
  const std::shared_ptr<LaunchLog>& log() const noexcept { return log_; }

  // Any thread, into the log place of `launch.thread`. `makes_work`: records are expected.
  void put(std::uint32_t id, const Launch& launch, bool makes_work) noexcept {
    using What = LogEntry::What;
    log_->append(launch.thread, {launch.start_ns, launch.context, id, launch.outer,
                                 makes_work ? What::kLaunchWithWork : What::kLaunch, launch.kind, launch.paused});
  }
  // The calling thread's place. Records of this call will come after all; for vendors that tell when work is handed to
  // the device.
  void expect(std::uint32_t thread, std::uint32_t id) noexcept {
    log_->append(thread, {.id = id, .what = LogEntry::What::kExpected});
  }
  // Nothing will come: the call failed, or another id's record was its.
  void cancel(std::uint32_t thread, std::uint32_t id) noexcept {
    log_->append(thread, {.id = id, .what = LogEntry::What::kCancelled});
  }
  // The thread is in this region from now on; 0: in none.
  void place(std::uint32_t thread, std::int64_t time_ns, leadline_context context) noexcept {
    log_->append(thread, {.time_ns = time_ns, .context = context, .what = LogEntry::What::kPlace});
  }

  // Everything below but outstanding(), forgotten() and held_bytes(): the thread that folds records.

  // What a record says of a launch: it is the launch's only one, one of those of a graph, or none of a device's work.
  enum class Record : std::uint8_t { kWork, kWholeGraph, kOther };
  // The launch that a record is of.
  std::optional<Launch> get(std::uint32_t id, Record record = Record::kWork) noexcept;

  // No record of anything that began before this time is on its way any more: the oldest launch without one, or now.
  std::int64_t watermark() noexcept;

  // Splits a gap [from_ns, to_ns) of a device at the borders of the regions that its launching thread was in, and calls
  // charge(context, ns) for each part, in order. What lies in the region of the launch belongs to the launch, whose
  // call led to it; what lies in none belongs to the region or launch that follows.
  template <class Charge>
  void split(std::int64_t from_ns, std::int64_t to_ns, const Launch& launch, Charge&& charge) const;
  // Regions that ended before will not be asked for any more.
  void forget_places_before(std::int64_t time_ns) noexcept;

  // Calls whose records have not come (graph launches count until their first node).
  std::uint64_t outstanding() const noexcept;
  // Launches and borders of regions given up for lack of room.
  std::uint64_t forgotten() const noexcept { return forgotten_.load(std::memory_order_relaxed) + log_->lost(); }
  std::size_t held_bytes() const noexcept { return log_->held_bytes() + table_bytes_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::uint32_t kNowhere = ~std::uint32_t{0};
  enum class State : std::uint8_t {
    kDone,     // its record has come, or none will
    kWaiting,  // for its record
    kPartly,   // further nodes of a graph may come
  };
  struct Entry {
    Launch launch;
    std::int64_t last_record_ns = 0;  // of a graph
    std::uint32_t id = 0;
    std::uint32_t next = kNowhere;  // of the same thread; or the next row that is free
    State state = State::kDone;
    bool is_queued = false;
  };
  struct Place {
    std::int64_t time_ns;
    leadline_context context;
  };
  struct Thread {
    std::uint32_t first = kNowhere;  // of its launches, in their order, from the oldest that is not done
    std::uint32_t last = kNowhere;
    std::vector<Place> places;    // in their order; a deque would take memory for each thread that has none
    std::size_t first_place = 0;  // that is still asked for
  };

  void collect() noexcept;
  void take(std::uint32_t thread, const LogEntry& entry);
  void take_launch(std::uint32_t thread, const LogEntry& entry);
  void take_place(std::uint32_t thread, const LogEntry& entry);
  static void drop_places(Thread& thread) noexcept;
  void queue(std::uint32_t row) noexcept;
  void await(Entry& entry) noexcept;
  void done(Entry& entry) noexcept;
  void pass(Thread& thread) noexcept;
  void keep_readable(std::uint32_t id) noexcept;
  void give_up_oldest() noexcept;
  void forget(std::uint32_t id) noexcept;
  Thread& thread_at(std::uint32_t thread);
  Entry* entry_of(std::uint32_t id) noexcept;
  std::uint32_t new_row();
  void free_row(std::uint32_t row) noexcept;

  std::shared_ptr<LaunchLog> log_ = std::make_shared<LaunchLog>();
  std::vector<Entry> entries_;
  std::uint32_t free_ = kNowhere;
  RowsById rows_;
  std::vector<std::uint32_t> readable_ = std::vector<std::uint32_t>(kReadable);  // a ring of ids
  std::size_t readable_begin_ = 0;
  std::size_t readable_count_ = 0;
  std::vector<Thread> threads_;
  std::int64_t now_ns_ = 0;  // of the last look
  std::atomic<std::uint64_t> waiting_{0};
  std::atomic<std::uint64_t> collected_{0};  // of LaunchLog::works()
  std::atomic<std::uint64_t> forgotten_{0};
  std::atomic<std::size_t> table_bytes_{0};
};

template <class Charge>
void CorrelationMap::split(std::int64_t from_ns, std::int64_t to_ns, const Launch& launch, Charge&& charge) const {
  static const Thread kNone;
  const Thread& thread = launch.thread < threads_.size() ? threads_[launch.thread] : kNone;
  const std::span<const Place> places = std::span(thread.places).subspan(thread.first_place);
  const auto after = [&](std::int64_t time_ns) {  // the first border later than that
    return std::upper_bound(places.begin(), places.end(), time_ns,
                            [](std::int64_t time, const Place& place) { return time < place.time_ns; });
  };
  const auto in_force = [&](auto border) { return border == places.begin() ? 0 : std::prev(border)->context; };
  auto at_launch = after(launch.start_ns);
  if (in_force(at_launch) == launch.context && at_launch != places.begin()) --at_launch;  // the call was a long one
  const leadline_context of_launch = in_force(at_launch);
  auto border = after(from_ns);
  leadline_context now = in_force(border);
  std::int64_t since = from_ns;
  std::int64_t homeless_ns = 0;
  for (; border != places.end() && border->time_ns < to_ns; ++border) {
    if (border->time_ns > since) {
      if (now != 0) {
        charge(now, border->time_ns - since + homeless_ns);
        homeless_ns = 0;
      } else {
        homeless_ns += border->time_ns - since;
      }
      since = border->time_ns;
    }
    now = border->context;
  }
  const bool is_launchs = now == 0 || now == of_launch;
  if (to_ns > since || homeless_ns > 0) charge(is_launchs ? launch.context : now, to_ns - since + homeless_ns);
}

}  // namespace leadline::gpu
