// The events of a trace window as the columns of their table. Each column is made when it is written, so that a window
// of a million events is not in memory once more.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/schema_generated.h"
#include "cct/trace_event.h"
#include "writer/merged_tree.h"

namespace leadline {

class EventTable {
 public:
  static constexpr std::string_view kName = tables::Events::kName;

  // Makes the nodes of the events and the rows of their threads in `tree`. `source` outlives this and is not cleared
  // meanwhile; events that are added later are not of the table. Throws std::bad_alloc.
  EventTable(MergedTree& tree, const TraceEventSource& source);

  // Calls f(name, values) for each column, ordered by start_ns. Throws std::bad_alloc.
  template <class F>
  void for_each_column(F&& f) const {
    using Event = const TraceEvent&;
    const auto column = [&](auto member, const auto& value_of) {
      tables::Events table;
      auto& values = table.*member;
      values.resize(rank_.size());
      std::uint32_t at = 0;
      source_->for_each_of(extent_, [&](Event event) {
        values[rank_[at]] = value_of(event, at);
        ++at;
      });
      f(name_of(table, &values), values);
    };
    using Table = tables::Events;
    column(&Table::start_ns, [](Event event, std::uint32_t) { return event.start_ns; });
    column(&Table::duration_ns, [](Event event, std::uint32_t) { return event.duration_ns; });
    column(&Table::kind, [](Event event, std::uint32_t) { return static_cast<std::uint8_t>(event.kind); });
    column(&Table::node, [&](Event, std::uint32_t at) { return nodes_[at]; });
    column(&Table::thread, [&](Event event, std::uint32_t) { return row(event.thread); });
    column(&Table::device, [](Event event, std::uint32_t) { return event.device; });
    column(&Table::stream, [](Event event, std::uint32_t) { return event.stream; });
    column(&Table::correlation, [](Event event, std::uint32_t) { return event.correlation; });
    column(&Table::sequence, [](Event event, std::uint32_t) { return event.sequence; });
    column(&Table::forward_thread, [&](Event event, std::uint32_t) { return row(event.forward_thread); });
    column(&Table::bytes, [](Event event, std::uint32_t) { return event.bytes; });
    column(&Table::awaits, [](Event event, std::uint32_t) { return event.awaits; });
    column(&Table::awaits_correlation, [](Event event, std::uint32_t) { return event.awaits_correlation; });
    column(&Table::graph_node, [](Event event, std::uint32_t) { return event.graph_node; });
    column(&Table::step, [](Event event, std::uint32_t) { return event.step; });
  }

 private:
  static std::string_view name_of(const tables::Events& table, const void* column) {
    std::string_view name;
    table.for_each_column([&](std::string_view one, const auto& values) {
      if (&values == column) name = one;
    });
    return name;
  }
  std::int32_t row(ThreadIndex thread) const noexcept {
    return raw(thread) < threads_ ? static_cast<std::int32_t>(raw(thread)) : -1;
  }

  const TraceEventSource* source_;
  TraceEventExtent extent_;
  std::uint32_t threads_ = 0;         // rows of threads that there are
  std::vector<std::uint32_t> rank_;   // the row of each event
  std::vector<std::uint32_t> nodes_;  // the node of each event in the merged tree
};

}  // namespace leadline
