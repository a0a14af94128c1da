// CUDA graphs: where each node was captured, kept for as long as the graph lives.
//
// Nodes are made one by one at capture (with a call path) and cloned when the graph is instantiated; at replay the
// device's records name the clone. Writers are the threads that capture; readers fold records. Capturing is slow
// anyway, so a short lock is fine there; a launch never comes here.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "leadline/monitor.h"

namespace leadline::nvidia {

class GraphMap {
 public:
  static constexpr std::size_t kMostNodes = 1u << 20;
  // Records of a graph's last replay may come after its end, so that many nodes outlive it.
  static constexpr std::size_t kAfterlife = 1u << 16;

  struct Found {
    leadline_context captured_at = 0;
    bool known = false;  // false: the node was made before measuring began
  };

  void created(std::uint64_t node, std::uint64_t graph, leadline_context context) {
    const std::lock_guard lock(mutex_);
    keep(node, graph, context);
  }

  // `graph`: the graph, or the executable graph, that the clone belongs to.
  void cloned(std::uint64_t node, std::uint64_t original, std::uint64_t graph) {
    const std::lock_guard lock(mutex_);
    const auto found = nodes_.find(original);
    if (found != nodes_.end()) keep(node, graph, found->second);
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
    const auto found = nodes_.find(node);
    return found == nodes_.end() ? Found{} : Found{found->second, true};
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
  void keep(std::uint64_t node, std::uint64_t graph, leadline_context context) {
    if (nodes_.size() >= kMostNodes) {
      ++not_kept_;
      return;
    }
    nodes_[node] = context;
    of_graph_[graph].push_back(node);
  }
  void let_die(std::uint64_t node) {
    dying_.push_back(node);
    if (dying_.size() <= kAfterlife) return;
    nodes_.erase(dying_.front());
    dying_.pop_front();
  }

  mutable std::mutex mutex_;
  std::unordered_map<std::uint64_t, leadline_context> nodes_;
  std::unordered_map<std::uint64_t, std::vector<std::uint64_t>> of_graph_;
  std::deque<std::uint64_t> dying_;
  std::uint64_t not_kept_ = 0;
};

}  // namespace leadline::nvidia
