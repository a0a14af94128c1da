// Which of a vendor's counters stand for our metrics on a chip: the first spellings that the chip knows and that can be
// counted together in one pass.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "gpu/counter_samples.h"

namespace leadline::gpu {

// One way to count something that was asked for.
struct CounterRecipe {
  std::vector<const char*> vendors;    // names of the vendor's
  std::vector<CountedMetric> metrics;  // of ours
  // From the values of `vendors` to those of `metrics`.
  void (*compute)(const double* vendors, double* metrics);
};

// What a user may ask for ("occupancy", "dram", ...), in the order in which all of them are taken, and how to count it,
// best first.
using CounterRecipes = std::vector<std::pair<std::string, std::vector<CounterRecipe>>>;
// Empty for an unknown name.
const std::vector<CounterRecipe>& recipes_of(const CounterRecipes& all, const std::string& name);

struct CounterChoice {
  std::vector<const CounterRecipe*> recipes;
  std::vector<std::string> taken;
  std::vector<std::string> unknown;   // to this chip
  std::vector<std::string> left_out;  // they would take another pass
  // Names without those that several recipes share.
  std::vector<const char*> vendors() const;
  std::vector<CountedMetric> metrics() const;
};

// `passes`: how many the chip needs for counters of these names, 0 where it does not know one of them.
CounterChoice choose_counters(const CounterRecipes& all, const std::vector<std::string>& asked,
                              const std::function<std::size_t(const std::vector<const char*>&)>& passes);

// "a, b and c"
std::string listed(const std::vector<std::string>& names);

}  // namespace leadline::gpu
