// Graphs of device work: where each node was captured, kept for as long as the graph lives.
//
// Nodes are made one by one at capture (with a call path) and cloned when the graph is instantiated; at replay the
// device's records name the clone. A graph captured before measuring began shows its nodes when it is instantiated
// again; one instantiated before shows them in its records only (docs/why/late-graphs.md). Nodes of graphs that are
// nodes of others come in records by numbers of their own, see instantiated(). Writers are the threads that capture;
// readers fold records. Capturing is slow anyway, so a short lock is fine there; a launch never comes here.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "leadline/monitor.h"

namespace leadline::gpu {

// The call that makes an executable graph, in which the program is; nothing where it does something else.
struct GraphMaking {
  leadline_context place = 0;
  std::uint32_t call = 0;  // 0: none
};

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
    kWithin,        // nothing told of it; `place` made the executable graph that it is in
  };
  struct Found {
    leadline_context place = 0;
    Origin origin = Origin::kBefore;
  };

  void created(std::uint64_t node, std::uint64_t graph, leadline_context place, const GraphMaking& making = {}) {
    const std::lock_guard lock(mutex_);
    keep(node, graph, {place, Origin::kCaptured});
    if (making.call != 0 && note_room()) making_[making.call].push_back({node, graph, true, false});
  }

  // `graph`: the graph, or the executable graph, that the clone belongs to. `holds_graph`: it is a graph as a node.
  void cloned(std::uint64_t node, std::uint64_t original, std::uint64_t graph, const GraphMaking& making,
              bool holds_graph = false) {
    const std::lock_guard lock(mutex_);
    const leadline_context instantiating = making.place;
    if (instantiating != 0) made_at(number_of(node), instantiating);
    if (making.call != 0 && note_room()) making_[making.call].push_back({node, graph, false, holds_graph});
    if (const Found found = find_locked(original); found.origin != Origin::kBefore && found.origin != Origin::kWithin) {
      keep(node, graph, found);
    } else if (instantiating != 0) {
      keep(node, graph, {instantiating, Origin::kInstantiated});
    }
  }

  // The call that made an executable graph ends. A graph that is a node of another is cloned under a number of its own,
  // but the device's records have its nodes as further ones of the whole: behind the whole's own, in the order of their
  // clones, before those that the driver adds for itself. Where that does not add up, or graphs are nested deeper,
  // nothing is said of them. `tell(node, clone)` hears of each node of a record and the clone that it is.
  template <class Tell>
  void instantiated(std::uint32_t call, const Tell& tell) {
    const std::lock_guard lock(mutex_);
    const auto found = making_.find(call);
    if (found == making_.end()) return;
    const std::vector<Made> made = std::move(found->second);
    making_.erase(found);
    std::vector<const Made*> clones;
    for (const Made& one : made) {
      if (!one.is_new) clones.push_back(&one);
    }
    if (clones.empty()) return;
    const Made& last = *clones.back();  // what a node holds is cloned before the node itself
    const std::uint32_t whole = number_of(last.node);
    if (whole == 0) return;  // the release does not number graphs
    std::vector<const Made*> within;
    std::unordered_set<std::uint64_t> own;
    for (const Made* clone : clones) {
      if (number_of(clone->node) == whole) {
        own.insert(clone->node);
      } else if (clone->holds_graph) {
        return;
      } else {
        within.push_back(clone);
      }
    }
    for (const Made& one : made) {  // each clone is told as new before it is told as a clone
      if (one.is_new && number_of(one.node) == whole && !own.contains(one.node) &&
          static_cast<std::uint32_t>(one.node) < own.size() + within.size()) {
        return;
      }
    }
    std::uint64_t next = std::uint64_t{whole} << 32 | own.size();
    for (const Made* clone : within) {
      keep(next, last.graph, find_locked(clone->node));
      tell(next++, clone->node);
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
  static constexpr std::size_t kMostMade = 1u << 14;
  static constexpr std::size_t kMostNotes = 256;  // calls under way

  struct Made {
    std::uint64_t node = 0;
    std::uint64_t graph = 0;
    bool is_new = false;  // told as a new node, not as a clone
    bool holds_graph = false;
  };

  static std::uint32_t number_of(std::uint64_t node) noexcept { return static_cast<std::uint32_t>(node >> 32); }

  // Of a node that nothing told of it is known at least where its executable graph was made, if that was seen.
  Found find_locked(std::uint64_t node) const {
    if (const auto found = nodes_.find(node); found != nodes_.end()) return found->second;
    if (given_up_.contains(number_of(node))) return {0, Origin::kGivenUp};
    if (const auto made = made_at_.find(number_of(node)); made != made_at_.end()) {
      return {made->second, Origin::kWithin};
    }
    return {};
  }
  bool note_room() const { return making_.size() < kMostNotes; }
  void made_at(std::uint32_t number, leadline_context place) {
    if (number == 0 || !made_at_.try_emplace(number, place).second) return;
    made_.push_back(number);
    if (made_.size() <= kMostMade) return;
    made_at_.erase(made_.front());
    made_.pop_front();
  }
  void keep(std::uint64_t node, std::uint64_t graph, Found found) {
    if (nodes_.size() >= kMostNodes || found.origin == Origin::kGivenUp) {
      ++not_kept_;
      if (given_up_.size() < kMostGivenUp) given_up_.insert(number_of(node));
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
  std::unordered_map<std::uint32_t, std::vector<Made>> making_;  // by call, until it ends
  std::unordered_map<std::uint32_t, leadline_context> made_at_;  // by number of the executable graph
  std::deque<std::uint32_t> made_;                               // the same, oldest first
};

}  // namespace leadline::gpu
