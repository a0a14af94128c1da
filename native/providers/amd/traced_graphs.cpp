#include "providers/amd/traced_graphs.h"

#include <algorithm>

#include "providers/amd/graphs.h"

namespace leadline::amd {

void TracedGraphs::add(const gpu::Work& work, std::uint32_t number, std::uint32_t nodes, const Take& take) {
  if (nodes == 0 || kept_ >= kMostKept) return take(work);
  const auto found = replays_.find(work.correlation);
  if (found == replays_.end() && names_.size() >= kMostNames) {
    if (kept_ > 0) return take(work);
    names_.clear();
  }
  gpu::Work kept = work;
  if (work.name != nullptr) kept.name = names_.emplace(work.name).first->c_str();
  Replay& replay = found != replays_.end() ? found->second : replays_[work.correlation];
  replay.works.push_back(kept);
  replay.number = number;
  replay.nodes = nodes;
  ++kept_;
  if (replay.works.size() < nodes) return;
  tell(replay, take);
  replays_.erase(work.correlation);
}

void TracedGraphs::tell(Replay& replay, const Take& take) {
  std::vector<gpu::Work>& works = replay.works;
  kept_ -= works.size();
  std::ranges::stable_sort(works, {}, &gpu::Work::start_ns);
  const bool is_known = works.size() == replay.nodes && std::ranges::all_of(works, [&](const gpu::Work& work) {
                          return work.queue == works.front().queue;
                        });
  for (std::uint32_t at = 0; at < works.size(); ++at) {
    if (is_known) {
      works[at].graph = replay.number;
      works[at].graph_node = Graphs::node(replay.number, at);
    }
    take(works[at]);
  }
}

void TracedGraphs::buffer_ended(const Take& take) {
  for (auto at = replays_.begin(); at != replays_.end();) {
    if (++at->second.buffers < 2) {
      ++at;
      continue;
    }
    tell(at->second, take);
    at = replays_.erase(at);
  }
}

void TracedGraphs::finish(const Take& take) {
  for (auto& [launch, replay] : replays_) tell(replay, take);
  replays_.clear();
}

}  // namespace leadline::amd
