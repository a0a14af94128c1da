// Kernels of replayed graphs as roctracer tells of them: all of a replay with the number of its launch, none with its
// node. They are kept until the replay is whole and numbered by their begin, as the capture launched them one behind
// the other; where they ran on several queues, or are not as many as were captured, they stand below the launch.
//
// For the thread that folds; memory is bounded by constants.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "gpu/work.h"

namespace leadline::amd {

class TracedGraphs {
 public:
  static constexpr std::size_t kMostKept = 1u << 16;   // kernels of replays that are not whole
  static constexpr std::size_t kMostNames = 1u << 14;  // of kernels
  using Take = std::function<void(const gpu::Work&)>;

  // A kernel of the replay of graph `number`, which has so many.
  void add(const gpu::Work& work, std::uint32_t number, std::uint32_t nodes, const Take& take);
  // A buffer of records has ended: what has waited for a whole one waits no longer.
  void buffer_ended(const Take& take);
  void finish(const Take& take);

 private:
  struct Replay {
    std::uint32_t number = 0;
    std::uint32_t nodes = 0;
    std::uint32_t buffers = 0;  // that ended since its first kernel
    std::vector<gpu::Work> works;
  };
  void tell(Replay& replay, const Take& take);

  std::unordered_map<std::uint32_t, Replay> replays_;  // by the launch's number
  std::unordered_set<std::string> names_;              // of kept kernels, whose records are gone
  std::size_t kept_ = 0;
};

}  // namespace leadline::amd
