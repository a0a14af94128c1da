#include "xla/buffers.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "xla/wire.h"

namespace leadline::xla {
namespace {

constexpr int64_t kMostBytes = int64_t{1} << 48;  // of one buffer; sums of what strangers wrote stay in range

int64_t sane(int64_t bytes) noexcept { return std::clamp<int64_t>(bytes, 0, kMostBytes); }

struct Allocation {
  int64_t index = 0;
  int64_t bytes = 0;
  bool other = false;  // an argument, a result, a constant, or a thread's own
  std::vector<int64_t> assigned;
};

Buffer read_location(std::string_view bytes) {
  Buffer made;
  Field field;
  for (Wire wire(bytes); wire.next(&field);) {
    if (field.is(2, 2)) made.name = field.bytes;
    if (field.is(4, 0)) made.instruction = field.integer();
  }
  return made;
}

void read_buffer(std::string_view bytes, std::unordered_map<int64_t, Buffer>* buffers) {
  int64_t id = 0;
  int64_t size = 0;
  Buffer made;
  Field field;
  for (Wire wire(bytes); wire.next(&field);) {
    if (field.is(1, 0)) id = field.integer();
    if (field.is(2, 0)) size = field.integer();
    if (field.is(3, 2)) made = read_location(field.bytes);
  }
  made.bytes = sane(size);
  buffers->emplace(id, made);
}

Allocation read_allocation(std::string_view bytes) {
  Allocation made;
  Field field;
  for (Wire wire(bytes); wire.next(&field);) {
    if (field.is(1, 0)) made.index = field.integer();
    if (field.is(2, 0)) made.bytes = sane(field.integer());
    const bool says_other = field.number == 3 || field.number == 5 || field.number == 7 || field.number == 12;
    if (says_other && field.wire == 0 && field.value != 0) made.other = true;
    if (!field.is(9, 2)) continue;
    int64_t buffer = 0;
    Field inner;
    for (Wire assigned(field.bytes); assigned.next(&inner);) {
      if (inner.is(1, 0)) buffer = inner.integer();
    }
    made.assigned.push_back(buffer);
  }
  return made;
}

using OfAllocation = std::unordered_map<int64_t, std::vector<int64_t>>;

// The buffers of each allocation that are alive when it is fullest.
void read_peak(std::string_view bytes, OfAllocation* peaks) {
  int64_t index = 0;
  std::vector<int64_t> alive;
  Field field;
  for (Wire wire(bytes); wire.next(&field);) {
    if (field.is(1, 0)) index = field.integer();
    if (field.number == 2) integers(field, [&](int64_t buffer) { alive.push_back(buffer); });
  }
  peaks->emplace(index, std::move(alive));
}

struct Event {
  int64_t kind = 0;  // 0: comes, 1: goes, 2: shares the place of another
  int64_t buffer = 0;
};

Event read_event(std::string_view bytes) {
  Event event;
  Field field;
  for (Wire wire(bytes); wire.next(&field);) {
    if (field.is(1, 0)) event.kind = field.integer();
    if (field.is(2, 0)) event.buffer = field.integer();
  }
  return event;
}

// The same from a trace of buffers that come, go and are shared, as older releases write it.
void read_trace(std::string_view bytes, const std::unordered_map<int64_t, Buffer>& buffers, OfAllocation* peaks) {
  int64_t index = 0;
  std::vector<Event> events;
  Field field;
  for (Wire wire(bytes); wire.next(&field);) {
    if (field.is(3, 0)) index = field.integer();
    if (field.is(1, 2)) events.push_back(read_event(field.bytes));
  }
  const auto size = [&](int64_t buffer) {
    const auto known = buffers.find(buffer);
    return known == buffers.end() ? 0 : known->second.bytes;
  };
  int64_t now = 0;
  int64_t most = -1;
  size_t until = 0;
  std::unordered_set<int64_t> alive;
  for (size_t i = 0; i < events.size(); ++i) {
    if (events[i].kind == 0 && alive.insert(events[i].buffer).second) now = sane(now + size(events[i].buffer));
    if (events[i].kind == 1 && alive.erase(events[i].buffer) != 0) now = sane(now - size(events[i].buffer));
    if (now > most) {
      most = now;
      until = i + 1;
    }
  }
  alive.clear();
  for (size_t i = 0; i < until; ++i) {
    if (events[i].kind == 0) alive.insert(events[i].buffer);
    if (events[i].kind == 1) alive.erase(events[i].buffer);
  }
  peaks->emplace(index, std::vector<int64_t>(alive.begin(), alive.end()));
}

}  // namespace

Temporaries temporaries(std::string_view assignment) {
  std::unordered_map<int64_t, Buffer> buffers;
  std::vector<Allocation> allocations;
  OfAllocation peaks;
  Field field;
  for (Wire wire(assignment); wire.next(&field);) {
    if (field.is(1, 2)) read_buffer(field.bytes, &buffers);
    if (field.is(3, 2)) allocations.push_back(read_allocation(field.bytes));
    if (field.is(5, 2)) read_peak(field.bytes, &peaks);
  }
  for (Wire wire(assignment); wire.next(&field);) {
    if (field.is(4, 2)) read_trace(field.bytes, buffers, &peaks);
  }
  Temporaries found;
  found.at_peak = true;
  for (const Allocation& allocation : allocations) {
    if (allocation.other || allocation.bytes <= 0) continue;
    found.bytes = sane(found.bytes + allocation.bytes);
    const auto peak = peaks.find(allocation.index);
    const bool told = peak != peaks.end() && !peak->second.empty();
    found.at_peak = found.at_peak && (told || allocation.assigned.size() <= 1);
    for (const int64_t buffer : told ? peak->second : allocation.assigned) {
      const auto known = buffers.find(buffer);
      if (known != buffers.end() && known->second.bytes > 0) found.buffers.push_back(known->second);
    }
  }
  std::stable_sort(found.buffers.begin(), found.buffers.end(),
                   [](const Buffer& a, const Buffer& b) { return a.bytes > b.bytes; });
  return found;
}

}  // namespace leadline::xla
