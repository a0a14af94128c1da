// HIP graphs. Records of a replay name no node, so nodes are told by their order: the how manieth kernel of the
// capture, the how manieth dispatch of the replay. Where the two are not equally many the replay's kernels hang below
// its launch.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "base/hash.h"
#include "gpu/graph_map.h"

namespace leadline::amd {

class Graphs {
 public:
  explicit Graphs(gpu::GraphMap& nodes) : nodes_(nodes) {}

  // A capture has ended with these launches, in their order.
  void captured(std::uint64_t graph, const std::vector<leadline_context>& places);
  void instantiated(std::uint64_t graph, std::uint64_t executable, leadline_context place);
  void destroyed(std::uint64_t graph);
  void executable_destroyed(std::uint64_t executable);

  // What a launch of it replays; number 0: made before measuring, or not by a capture. Takes no lock.
  struct Executable {
    std::uint32_t number = 0;
    std::uint32_t nodes = 0;
  };
  Executable find(std::uint64_t executable) const noexcept;
  void launched(std::uint32_t correlation, std::uint32_t number) noexcept;
  // A replay dispatched so many kernels.
  void replayed(const Executable& executable, std::uint32_t dispatched) noexcept;

  // For the thread that folds: the graph that a launch replays, 0 where its nodes cannot be told.
  std::uint32_t of_launch(std::uint32_t correlation) const noexcept;
  // Kernels of the executable graph of that number.
  std::uint32_t nodes_of(std::uint32_t number) const noexcept {
    return counts_[number & (kSlots - 1)].load(std::memory_order_relaxed);
  }
  static std::uint64_t node(std::uint32_t number, std::uint32_t at) noexcept {
    return std::uint64_t{number} << 32 | at;
  }

 private:
  static constexpr std::size_t kSlots = 1u << 13;
  struct Slot {
    std::atomic<std::uint64_t> executable{0};
    std::atomic<std::uint64_t> number_and_nodes{0};
  };
  struct LaunchSlot {
    std::atomic<std::uint64_t> correlation_and_number{0};
  };
  static std::size_t index(std::uint64_t handle) noexcept { return hash_mix(handle, 0) & (kSlots - 1); }

  gpu::GraphMap& nodes_;
  std::mutex mutex_;
  std::unordered_map<std::uint64_t, Executable> graphs_;  // captured, not executable
  std::unordered_map<std::uint64_t, std::uint32_t> executables_;
  std::uint32_t next_ = 1;
  std::array<Slot, kSlots> slots_{};
  std::array<LaunchSlot, kSlots> launches_{};
  std::array<std::atomic<bool>, kSlots> unequal_{};  // by number
  std::array<std::atomic<std::uint32_t>, kSlots> counts_{};
};

}  // namespace leadline::amd
