#include "xla/graph_memory.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "xla/saturating.h"

namespace leadline::xla {
namespace {

// Of numbers that are not said, and of sizes that cannot be.
int64_t size_or_0(int64_t value) noexcept { return std::max<int64_t>(value, 0); }

std::vector<Allocator::Moment> thinned(std::vector<Allocator::Moment> moments, size_t most) {
  if (moments.size() <= most || most < 2) return moments;
  const size_t stretch = (2 * moments.size() + most - 1) / most;
  std::vector<Allocator::Moment> kept;
  for (size_t from = 0; from < moments.size(); from += stretch) {
    const size_t last = std::min(from + stretch, moments.size()) - 1;
    const auto stretch_of = std::span(moments).subspan(from, last + 1 - from);
    const auto highest = std::ranges::max_element(stretch_of, {}, &Allocator::Moment::in_use);
    if (&*highest != &stretch_of.back()) kept.push_back(*highest);
    kept.push_back(stretch_of.back());
  }
  return kept;
}

}  // namespace

void want_memory(Wanted* wanted) {
  for (const char* name : {"requested_bytes", "allocation_bytes", "bytes_allocated", "bytes_reserved",
                           "bytes_available", "fragmentation*1000", "peak_bytes_in_use"}) {
    if (std::ranges::find(wanted->numbers, name) == wanted->numbers.end()) wanted->numbers.emplace_back(name);
  }
  wanted->texts.emplace_back("allocator_name");
}

std::vector<Allocator> allocators(const Space& space, size_t most) {
  if (space.text_column("allocator_name") < 0 || space.number_column("peak_bytes_in_use") < 0) return {};
  const Space::Events& events = space.events();
  const auto column = [&](const char* name) { return static_cast<size_t>(space.number_column(name)); };
  const size_t requested = column("requested_bytes");
  const size_t given = column("allocation_bytes");
  const size_t in_use = column("bytes_allocated");
  const size_t reserved = column("bytes_reserved");
  const size_t available = column("bytes_available");
  const size_t fragmentation = column("fragmentation*1000");
  const size_t peak = column("peak_bytes_in_use");
  const auto name = static_cast<size_t>(space.text_column("allocator_name"));
  struct Change {
    uint32_t row;
    bool frees;
  };
  std::vector<Change> changes;
  for (uint32_t row = 0; row < events.size(); ++row) {
    const std::string_view what = space.strings()[events.name[row]];
    if (what != "MemoryAllocation" && what != "MemoryDeallocation") continue;
    if (events.number(in_use, row) != kUnknown) changes.push_back({row, what == "MemoryDeallocation"});
  }
  std::ranges::stable_sort(changes, {}, [&](const Change& one) { return events.start_ps[one.row]; });
  std::vector<Allocator> found;
  std::unordered_map<uint32_t, size_t> places;
  for (const auto& [row, frees] : changes) {
    const auto [place, is_new] = places.try_emplace(events.text(name, row), found.size());
    if (is_new) found.emplace_back().name = events.text(name, row);
    Allocator& one = found[place->second];
    const int64_t asked = size_or_0(events.number(requested, row));
    const int64_t got = size_or_0(events.number(given, row));
    Allocator::Moment now = one.moments.empty() ? Allocator::Moment() : one.moments.back();
    now.at_ps = events.start_ps[row];
    now.in_use = size_or_0(events.number(in_use, row));
    now.reserved = size_or_0(events.number(reserved, row));
    now.available = size_or_0(events.number(available, row));
    now.fragmentation = std::clamp<int64_t>(events.number(fragmentation, row), 0, 1000);
    now.blocks += frees ? -1 : 1;
    const int64_t wasted = std::max<int64_t>(got - asked, 0);
    now.wasted = plus(now.wasted, frees ? -wasted : wasted);
    one.moments.push_back(now);
    ++(frees ? one.frees : one.allocations);
    if (!frees) {
      one.requested_bytes = plus(one.requested_bytes, asked);
      one.given_bytes = plus(one.given_bytes, got);
    }
    one.peak_bytes = std::max({one.peak_bytes, now.in_use, events.number(peak, row)});
    one.reserved_bytes = std::max(one.reserved_bytes, now.reserved);
    one.fragmentation = std::max(one.fragmentation, now.fragmentation);
  }
  for (Allocator& one : found) one.moments = thinned(std::move(one.moments), most);
  return found;
}

}  // namespace leadline::xla
