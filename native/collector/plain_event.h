// An event of the trace window in the few bytes that most events need.
//
// A step of training keeps hundreds of operators and allocations, and the pages that they fill are most of what a
// window costs the program's threads. Whatever does not fit (work of devices, calls of their drivers, what has no end,
// numbers beyond 32 bits) is kept whole instead, so nothing is ever cut off.
#pragma once

#include <cstdint>
#include <limits>

#include "cct/trace_event.h"

namespace leadline {

struct PlainEvent {
  std::int64_t start_ns = 0;
  std::uint32_t duration_ns = 0;
  NodeId node = kNoNode;
  std::int32_t value = 0;  // the bytes of an allocation, else the autograd number
  std::int32_t step = -1;
  std::uint16_t thread = kNobody;  // whose tree the node is in, too
  std::uint16_t forward_thread = kNobody;
  std::int16_t device = kCpuDevice;
  EventKind kind = EventKind::kOperator;

  static bool fits(const TraceEvent& event) noexcept {
    const std::int64_t absent = event.kind == EventKind::kAllocate ? event.sequence + 1 : event.bytes;
    const std::int64_t value = value_of(event);
    return event.duration_ns >= 0 && event.duration_ns <= std::numeric_limits<std::uint32_t>::max() &&
           event.tree == event.thread && has_number(event.thread) && has_number(event.forward_thread) &&
           value >= std::numeric_limits<std::int32_t>::min() && value <= std::numeric_limits<std::int32_t>::max() &&
           absent == 0 && event.stream == kNoStream && event.correlation == 0 && event.awaits == -1 &&
           event.awaits_correlation == 0 && event.graph_node == 0;
  }

  // Of an event that fits.
  static PlainEvent of(const TraceEvent& event) noexcept {
    return {event.start_ns,
            static_cast<std::uint32_t>(event.duration_ns),
            event.node,
            static_cast<std::int32_t>(value_of(event)),
            event.step,
            static_cast<std::uint16_t>(raw(event.thread)),
            static_cast<std::uint16_t>(raw(event.forward_thread)),
            event.device,
            event.kind};
  }

  TraceEvent whole() const noexcept {
    TraceEvent event;
    event.start_ns = start_ns;
    event.duration_ns = duration_ns;
    event.kind = kind;
    event.device = device;
    event.tree = event.thread = number(thread);
    event.node = node;
    event.forward_thread = number(forward_thread);
    (kind == EventKind::kAllocate ? event.bytes : event.sequence) = value;
    event.step = step;
    return event;
  }

 private:
  static constexpr std::uint16_t kNobody = std::numeric_limits<std::uint16_t>::max();
  static_assert(static_cast<std::uint16_t>(raw(kNoThread)) == kNobody);

  static std::int64_t value_of(const TraceEvent& event) noexcept {
    return event.kind == EventKind::kAllocate ? event.bytes : event.sequence;
  }
  static bool has_number(ThreadIndex thread) noexcept { return raw(thread) < kNobody || thread == kNoThread; }
  static ThreadIndex number(std::uint16_t thread) noexcept {
    return thread == kNobody ? kNoThread : ThreadIndex{thread};
  }
};
static_assert(sizeof(PlainEvent) == 32);

}  // namespace leadline
