#include "providers/amd/roctx_ranges.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <new>

#include "base/ids.h"
#include "gpu/measure.h"
#include "leadline/monitor.h"

namespace leadline::amd {
namespace {

// roctx ranges that the thread has open. Regions nest, so one that ends inside another stays until that one ends.
struct Ranges {
  static constexpr std::size_t kMost = 256;
  struct Range {
    std::uint64_t id = 0;       // 0: not shown
    std::uint64_t started = 0;  // roctx's number of a range that a pop does not end; 0: pushed
    bool ended = false;
  };
  const void* of = nullptr;  // the RoctxRanges that it belongs to
  std::size_t open = 0;
  std::size_t beyond = 0;  // pushed where there was no room: not shown
  std::array<Range, kMost> ranges{};
};
// Of the heap: a module that loads late has little room for what is each thread's own.
thread_local constinit Ranges* t_ranges = nullptr;
thread_local constinit bool t_gone = false;
struct AtThreadEnd {
  ~AtThreadEnd() {
    delete t_ranges;
    t_ranges = nullptr;
    t_gone = true;
  }
};

// The calling thread's; nullptr where there is no memory, and at the end of the thread.
Ranges* ranges_of_thread() noexcept {
  if (t_ranges || t_gone) return t_ranges;
  t_ranges = new (std::nothrow) Ranges;
  thread_local AtThreadEnd at_end;
  static_cast<void>(at_end);
  return t_ranges;
}

std::atomic<std::uint64_t> next_range{1};

void emit_range(leadline_phase phase, const char* name, std::uint64_t id) noexcept {
  leadline_event event{};
  event.domain = LEADLINE_DOMAIN_REGION;
  event.phase = phase;
  event.time_ns = leadline_monitor_now();
  event.token = reinterpret_cast<const void*>(id << 1 | 1);  // odd, so never an address that another uses as its token
  event.of.region.name = name;
  event.of.region.kind = LEADLINE_REGION_USER;
  leadline_monitor_emit(&event);
}

void count_unordered() noexcept {
  gpu::count_loss(LossKind::kRangeUnordered, 1,
                  "A roctx range did not end inside the range around it, or not on its thread; its time runs until the "
                  "ranges in it have ended.");
}

void close_range(Ranges& ranges, std::size_t at) noexcept {
  Ranges::Range* const first = ranges.ranges.data();
  Ranges::Range* const end = first + ranges.open;
  const auto shown = [](const Ranges::Range& range) { return range.id != 0; };
  if (shown(first[at]) && std::any_of(first + at + 1, end, shown)) {
    first[at].ended = true;
    return count_unordered();
  }
  if (shown(first[at])) emit_range(LEADLINE_END, "", first[at].id);
  std::move(first + at + 1, end, first + at);
  --ranges.open;
  while (ranges.open > 0 && first[ranges.open - 1].ended) emit_range(LEADLINE_END, "", first[--ranges.open].id);
}

// False where the thread has no range of that number.
bool close_started(Ranges& ranges, std::uint64_t number) noexcept {
  for (std::size_t at = ranges.open; at-- > 0;) {
    const Ranges::Range& range = ranges.ranges[at];
    if (range.started != number || range.ended) continue;
    close_range(ranges, at);
    return true;
  }
  return false;
}

// Numbers of ranges that a thread has stopped and another one started, which closes them with its next marker.
constexpr std::size_t kElsewhere = 64;
std::array<std::atomic<std::uint64_t>, kElsewhere> ended_elsewhere{};
std::atomic<std::uint64_t> next_elsewhere{0};

void end_elsewhere(std::uint64_t number) noexcept {
  ended_elsewhere[next_elsewhere.fetch_add(1, std::memory_order_relaxed) % kElsewhere].store(number);
  count_unordered();
}

void close_those_ended_elsewhere(Ranges& ranges) noexcept {
  if (next_elsewhere.load(std::memory_order_relaxed) == 0) return;
  for (std::atomic<std::uint64_t>& slot : ended_elsewhere) {
    std::uint64_t number = slot.load();
    if (number != 0 && close_started(ranges, number)) slot.compare_exchange_strong(number, 0);
  }
}

}  // namespace

void RoctxRanges::take(Step step, const char* name, std::uint64_t number, bool shown) noexcept {
  Ranges* const mine = ranges_of_thread();
  if (!mine) return gpu::count_loss(LossKind::kInternalError, 1, "No memory to keep a roctx range.");
  Ranges& ranges = *mine;
  if (ranges.of != this) {
    ranges.of = this;
    ranges.open = ranges.beyond = 0;
  }
  close_those_ended_elsewhere(ranges);
  switch (step) {
    case Step::kStart:
      if (number == 0) return;
      [[fallthrough]];
    case Step::kPush: {
      if (ranges.open == Ranges::kMost) {
        if (step == Step::kPush) ++ranges.beyond;
        return;
      }
      Ranges::Range& range = ranges.ranges[ranges.open++];
      range = {0, number, false};
      if (!shown || !name) return;
      range.id = next_range.fetch_add(1, std::memory_order_relaxed);
      return emit_range(LEADLINE_BEGIN, name, range.id);
    }
    case Step::kPop:
      if (ranges.beyond > 0) return static_cast<void>(--ranges.beyond);
      for (std::size_t at = ranges.open; at-- > 0;) {
        if (ranges.ranges[at].started == 0 && !ranges.ranges[at].ended) return close_range(ranges, at);
      }
      return;
    case Step::kStop:
      if (number != 0 && !close_started(ranges, number)) end_elsewhere(number);
  }
}

}  // namespace leadline::amd
