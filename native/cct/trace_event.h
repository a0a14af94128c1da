// One event of a trace window as the tables know it, and where a segment takes them from.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/ids.h"

namespace leadline {

struct TraceEvent {
  std::int64_t start_ns = 0;      // CLOCK_MONOTONIC
  std::int64_t duration_ns = -1;  // -1: has not ended
  EventKind kind = EventKind::kOperator;
  std::int16_t device = kCpuDevice;  // row of the device table
  std::int32_t stream = kNoStream;
  ThreadIndex tree = kNoThread;  // whose tree `node` is in
  NodeId node = kNoNode;
  ThreadIndex thread = kNoThread;  // CPU thread; kNoThread for device work
  ThreadIndex forward_thread = kNoThread;
  std::uint64_t correlation = 0;
  std::int64_t sequence = -1;
  std::int64_t bytes = 0;
  std::int64_t awaits = -1;
  std::uint64_t awaits_correlation = 0;
  std::uint64_t graph_node = 0;
  std::int32_t step = -1;

  friend bool operator==(const TraceEvent&, const TraceEvent&) = default;
};

// The events that a source held at a moment.
struct TraceEventExtent {
  std::int64_t from_ns = 0;           // of those that began then or later
  std::vector<std::uint32_t> counts;  // of each list of the source
};

class TraceEventSource {
 public:
  virtual ~TraceEventSource() = default;

  // Whether there ever was a window, so that an empty one differs from none.
  virtual bool was_opened() const noexcept = 0;

  // Grows with every event that comes and whenever some are taken back, and never otherwise.
  virtual std::uint64_t changes() const noexcept = 0;

  // What there is now. Both may run while threads add more.
  virtual TraceEventExtent extent() const = 0;
  // The same events in the same order each time; it is no order of time.
  virtual void for_each_of(const TraceEventExtent& extent, const std::function<void(const TraceEvent&)>& f) const = 0;

  void for_each_event(const std::function<void(const TraceEvent&)>& f) const { for_each_of(extent(), f); }
};

}  // namespace leadline
