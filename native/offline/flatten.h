// A graph's tables as the program that the simulator runs: living tasks renumbered, lanes in order, edges by source.
// python/leadline/whatif/program.py says what each column means. May throw std::bad_alloc only.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace leadline::offline {

// Tables as a graph holds them; `alive`, `lane` and `order` by task, `discipline` by lane.
struct GraphTables {
  std::span<const uint8_t> alive;
  std::span<const int32_t> lane;
  std::span<const double> order;
  std::span<const uint8_t> discipline;
  std::span<const int32_t> edge_src, edge_dst;
  std::span<const uint8_t> edge_type;
  std::span<const int64_t> edge_latency_ns;
  std::span<const int32_t> wait_task, wait_lane;
};

// All but `ids` in rows of living tasks.
struct Flattened {
  std::vector<int64_t> ids;
  std::vector<int32_t> next_on_lane, launches, pending, initial;
  std::vector<int32_t> edge_offset, edge_dst;
  std::vector<uint8_t> edge_type;
  std::vector<int64_t> edge_latency_ns;
  std::vector<int32_t> wait_offset, wait_lane;
};

// Null where the tables fit together, else why they do not.
const char* problem(const GraphTables& tables);

Flattened flatten(const GraphTables& tables);

}  // namespace leadline::offline
