// One call that launches two kernels, a synchronisation and a collective, with times worked out by hand. Equality with
// the Python simulator on random programs is proved in tests/whatif.
#include "offline/simulate.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

using namespace leadline::offline;

namespace {

struct Tables {
  std::vector<int32_t> lane, group, next_on_lane, launches, pending, initial, edge_offset, edge_dst, wait_offset,
      wait_lane, group_size;
  std::vector<int64_t> duration_ns, gap_ns, earliest_ns, edge_latency_ns;
  std::vector<double> priority;
  std::vector<uint8_t> discipline, edge_type;

  Program program() const {
    return {lane,         duration_ns, gap_ns,          earliest_ns, group,      priority,
            next_on_lane, launches,    pending,         initial,     discipline, edge_offset,
            edge_dst,     edge_type,   edge_latency_ns, wait_offset, wait_lane,  group_size};
  }
};

// lane 0: thread with call 0 (10 ns, gap 5) and synchronisation 1 (3 ns); lane 1: stream with kernels 2 and 3 (100 ns).
Tables launch_and_wait() {
  Tables t;
  t.lane = {0, 0, 1, 1};
  t.duration_ns = {10, 3, 100, 100};
  t.gap_ns = {5, 0, 1, 0};
  t.earliest_ns = {0, 0, 0, 0};
  t.group = {-1, -1, -1, -1};
  t.priority = {0, 0, 0, 0};
  t.next_on_lane = {1, -1, -1, -1};
  t.launches = {0, 0, 1, 1};
  t.pending = {1, 1, 2, 2};
  t.initial = {0};
  t.discipline = {static_cast<uint8_t>(Discipline::order), static_cast<uint8_t>(Discipline::issue)};
  t.edge_offset = {0, 2, 2, 2, 2};
  t.edge_dst = {2, 3};
  t.edge_type = {static_cast<uint8_t>(EdgeType::launch), static_cast<uint8_t>(EdgeType::launch)};
  t.edge_latency_ns = {20, 20};
  t.wait_offset = {0, 0, 1, 1, 1};
  t.wait_lane = {1};
  return t;
}

}  // namespace

TEST_CASE("a synchronisation ends when everything issued to its stream has ended") {
  const Tables tables = launch_and_wait();
  const Program program = tables.program();
  REQUIRE(problem(program) == nullptr);
  const Run result = run(program, true);
  CHECK(result.finished == 4);
  CHECK(result.start_ns == std::vector<int64_t>{0, 15, 20, 121});
  CHECK(result.end_ns == std::vector<int64_t>{10, 224, 120, 221});
  CHECK(result.end_cause[1] == 3);
  CHECK(result.from_start[2] == 1);
  CHECK(result.slack_ns == std::vector<int64_t>{0, 206, 0, 0});
}

TEST_CASE("a collective ends for all when the last has started") {
  Tables t;
  t.lane = {0, 1};
  t.duration_ns = {30, 40};
  t.gap_ns = {0, 0};
  t.earliest_ns = {5, 100};
  t.group = {0, 0};
  t.group_size = {2};
  t.priority = {0, 0};
  t.next_on_lane = {-1, -1};
  t.launches = {0, 0};
  t.pending = {1, 1};
  t.initial = {0, 1};
  t.discipline = {0, 0};
  t.edge_offset = {0, 0, 0};
  t.wait_offset = {0, 0, 0};
  const Program program = t.program();
  REQUIRE(problem(program) == nullptr);
  const Run result = run(program, true);
  CHECK(result.end_ns == std::vector<int64_t>{130, 140});
  CHECK(result.end_cause == std::vector<int32_t>{1, -1});
}

TEST_CASE("an index that points outside is refused before anything runs") {
  Tables tables = launch_and_wait();
  tables.edge_dst[1] = 4;
  CHECK(problem(tables.program()) != nullptr);
}
