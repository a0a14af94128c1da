// The compiled what-if simulator: the same rules as python/leadline/whatif/reference.py, which is their definition, and
// identical answers. Knows nothing of Python and nothing of the profiler; may throw std::bad_alloc only.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace leadline::offline {

enum class EdgeType : uint8_t { launch, sync, stream_wait, thread, data, communication, dependency, start };
enum class Discipline : uint8_t { order, issue, ready };

constexpr bool counts_from_start(EdgeType type) noexcept { return type == EdgeType::launch || type == EdgeType::start; }

// See python/leadline/whatif/program.py for what each column means.
struct Program {
  std::span<const int32_t> lane;
  std::span<const int64_t> duration_ns;
  std::span<const int64_t> gap_ns;
  std::span<const int64_t> earliest_ns;
  std::span<const int32_t> group;
  std::span<const double> priority;
  std::span<const int32_t> next_on_lane;
  std::span<const int32_t> launches;
  std::span<const int32_t> pending;
  std::span<const int32_t> initial;
  std::span<const uint8_t> discipline;
  std::span<const int32_t> edge_offset;
  std::span<const int32_t> edge_dst;
  std::span<const uint8_t> edge_type;
  std::span<const int64_t> edge_latency_ns;
  std::span<const int32_t> wait_offset;
  std::span<const int32_t> wait_lane;
  std::span<const int32_t> group_size;
};

struct Run {
  std::vector<int64_t> start_ns;
  std::vector<int64_t> end_ns;
  std::vector<int64_t> slack_ns;
  std::vector<int32_t> cause;
  std::vector<int32_t> end_cause;
  std::vector<uint8_t> from_start;
  int64_t finished = 0;
};

// Tasks that never become ready keep start -1. Column lengths and indices must have been checked (see `problem`).
Run run(const Program& program, bool by_priority);

// A sentence when lengths disagree or an index points outside; nullptr when the program can be run.
const char* problem(const Program& program) noexcept;

}  // namespace leadline::offline
