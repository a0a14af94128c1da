// Graphs of device work: where each node was captured, kept for as long as the graph lives.
//
// Nodes are made one by one at capture (with a call path) and cloned when the graph is instantiated; at replay the
// device's records name the clone. A graph captured before measuring began shows its nodes when it is instantiated
// again; one instantiated before shows them in its records only (docs/why/late-graphs.md). Writers are the threads that
// capture; readers fold records. Capturing is slow anyway, so a short lock is fine there; a launch never comes here.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "leadline/monitor.h"

namespace leadline::gpu {

class GraphMap {
 public:
  static constexpr std::size_t kMostNodes = 1u << 20;
  // Records of a graph's last replay may come after its end, so that many nodes outlive it.
  static constexpr std::size_t kAfterlife = 1u << 16;

  enum class Origin : std::uint8_t {
    kBefore,        // made before measuring began
    kCaptured,      // `place` is the capture
    kInstantiated,  // captured before measuring began; `place` is the instantiation
    kGivenUp,       // there were too many nodes to keep the path of each
  };
  struct Found {
    leadline_context place = 0;
    Origin origin = Origin::kBefore;
  };

  void created(std::uint64_t node, std::uint64_t graph, leadline_context place) {
    const std::lock_guard lock(mutex_);
    keep(node, graph, {place, Origin::kCaptured});
  }

  // `graph`: the graph, or the executable graph, that the clone belongs to. `instantiating`: the place where the
  // program makes an executable graph; 0 when it does something else.
  void cloned(std::uint64_t node, std::uint64_t original, std::uint64_t graph, leadline_context instantiating) {
    const std::lock_guard lock(mutex_);
    if (const Found found = find_locked(original); found.origin != Origin::kBefore) {
      keep(node, graph, found);
    } else if (instantiating != 0) {
      keep(node, graph, {instantiating, Origin::kInstantiated});
    }
  }

  void node_destroyed(std::uint64_t node) {
    const std::lock_guard lock(mutex_);
    let_die(node);
  }

  void graph_destroyed(std::uint64_t graph) {
    const std::lock_guard lock(mutex_);
    const auto found = of_graph_.find(graph);
    if (found == of_graph_.end()) return;
    for (const std::uint64_t node : found->second) let_die(node);
    of_graph_.erase(found);
  }

  Found find(std::uint64_t node) const {
    const std::lock_guard lock(mutex_);
    return find_locked(node);
  }

  std::size_t nodes() const {
    const std::lock_guard lock(mutex_);
    return nodes_.size();
  }
  // Nodes whose capture path was given up because there were too many.
  std::uint64_t not_kept() const {
    const std::lock_guard lock(mutex_);
    return not_kept_;
  }

 private:
  static constexpr std::size_t kMostGivenUp = 1u << 14;

  Found find_locked(std::uint64_t node) const {
    if (const auto found = nodes_.find(node); found != nodes_.end()) return found->second;
    return {0, given_up_.contains(static_cast<std::uint32_t>(node >> 32)) ? Origin::kGivenUp : Origin::kBefore};
  }
  void keep(std::uint64_t node, std::uint64_t graph, Found found) {
    if (nodes_.size() >= kMostNodes || found.origin == Origin::kGivenUp) {
      ++not_kept_;
      if (given_up_.size() < kMostGivenUp) given_up_.insert(static_cast<std::uint32_t>(node >> 32));
      return;
    }
    nodes_[node] = found;
    of_graph_[graph].push_back(node);
  }
  void let_die(std::uint64_t node) {
    dying_.push_back(node);
    if (dying_.size() <= kAfterlife) return;
    nodes_.erase(dying_.front());
    dying_.pop_front();
  }

  mutable std::mutex mutex_;
  std::unordered_map<std::uint64_t, Found> nodes_;
  std::unordered_map<std::uint64_t, std::vector<std::uint64_t>> of_graph_;
  std::deque<std::uint64_t> dying_;
  std::unordered_set<std::uint32_t> given_up_;  // numbers of graphs, the upper half of their nodes' ids
  std::uint64_t not_kept_ = 0;
};

}  // namespace leadline::gpu
