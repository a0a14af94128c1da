#include "writer/event_table.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace leadline {

EventTable::EventTable(MergedTree& tree, const TraceEventSource& source) : source_(&source), extent_(source.extent()) {
  const std::size_t most = std::accumulate(extent_.counts.begin(), extent_.counts.end(), std::size_t{0});
  std::vector<std::int64_t> starts;
  starts.reserve(most);
  nodes_.reserve(most);
  const auto make_row = [&](ThreadIndex thread) {
    if (tree.has_thread(thread)) tree.thread_node(thread);
  };
  source.for_each_of(extent_, [&](const TraceEvent& event) {
    starts.push_back(event.start_ns);
    nodes_.push_back(raw(tree.resolve(event.tree, event.node)));
    make_row(event.thread);
    make_row(event.forward_thread);
  });
  threads_ = tree.thread_count();
  std::vector<std::uint32_t> order(starts.size());
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(),
            [&](std::uint32_t a, std::uint32_t b) { return std::tuple(starts[a], a) < std::tuple(starts[b], b); });
  rank_.resize(order.size());
  for (std::uint32_t at = 0; at < order.size(); ++at) rank_[order[at]] = at;
}

}  // namespace leadline
