#include "providers/nvidia/counter_choice.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

using namespace leadline::nvidia;

namespace {

// A chip that counts so many metrics of multiprocessors at once, their timers' apart, and lacks some.
auto chip(std::size_t at_once, const std::set<std::string>& lacks = {}) {
  return [at_once, lacks](const std::vector<const char*>& names) -> std::size_t {
    std::size_t count = 0;
    for (const std::string name : names) {
      if (lacks.contains(name)) return 0;
      if (name.starts_with("sm__") && name.find("realtime") == std::string::npos) ++count;
    }
    return count > at_once ? 2 : 1;
  };
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("the first spelling of each is taken where all fit") {
  const CounterChoice choice = choose_counters(counter_names(), chip(99));
  CHECK(choice.taken == counter_names());
  CHECK(choice.left_out.empty());
  CHECK(std::string(choice.vendors().front()) == "sm__warps_active.avg.pct_of_peak_sustained_active");
  CHECK(choice.metrics().size() == 12);
}

TEST_CASE("other spellings are tried before anything is left out") {
  const CounterChoice choice = choose_counters(counter_names(), chip(1));
  CHECK(choice.taken == counter_names());
  const auto names = choice.vendors();
  CHECK(std::ranges::any_of(names, [](const char* n) { return std::string(n).find("inactive") != std::string::npos; }));
}

TEST_CASE("what was asked for first stays, and what does not fit beside it is named") {
  const std::set<std::string> lacks{"tpc__warps_inactive_sm_active_realtime.avg.pct_of_peak_sustained_elapsed",
                                    "sm__inst_executed_realtime.avg.pct_of_peak_sustained_elapsed"};
  CounterChoice choice = choose_counters(counter_names(), chip(2, lacks));
  CHECK(choice.taken == Names{"occupancy", "dram", "tensor", "l2", "shared", "global"});
  CHECK(choice.left_out == Names{"issue"});
  choice = choose_counters({"issue", "tensor", "occupancy"}, chip(2, lacks));
  CHECK(choice.taken == Names{"issue", "tensor"});
  CHECK(choice.left_out == Names{"occupancy"});
}

TEST_CASE("what a chip does not have is told apart from what does not fit") {
  const CounterChoice choice =
      choose_counters({"l2", "dram", "nonsense"}, chip(99, {"dram__throughput.avg.pct_of_peak_sustained_elapsed",
                                                            "lts__t_sectors.avg.pct_of_peak_sustained_elapsed"}));
  CHECK(choice.unknown == Names{"l2", "nonsense"});
  CHECK(choice.taken == Names{"dram"});
  CHECK(choice.metrics().size() == 1);  // bytes alone
}

TEST_CASE("both spellings of occupancy say the same") {
  const auto& ways = counter_recipes("occupancy");
  const double active = 80, warps = 50;
  const double direct[] = {warps, active};
  const double free_room[] = {active * (1 - warps / 100), active};
  double one[2], other[2];
  ways[0].compute(direct, one);
  ways[1].compute(free_room, other);
  CHECK(std::abs(one[0] - other[0]) < 1e-12);
  CHECK(one[1] == other[1]);
  const double idle[] = {0, 0};
  ways[1].compute(idle, other);
  CHECK(other[0] == 0);
}
