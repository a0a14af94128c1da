// Which of CUPTI's metrics stand for ours on a chip: the first spellings that the chip knows and that can be counted
// together in one pass.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "gpu/counter_samples.h"

namespace leadline::nvidia {

// One way to count something that was asked for.
struct CounterRecipe {
  std::vector<const char*> vendors;         // names of CUPTI's metrics
  std::vector<gpu::CountedMetric> metrics;  // of ours
  // From the values of `vendors` to those of `metrics`.
  void (*compute)(const double* vendors, double* metrics);
};

// What a user may ask for ("occupancy", "dram", ...), in the order in which all of them are taken.
const std::vector<std::string>& counter_names();
// How to count it, best first; empty for an unknown name.
const std::vector<CounterRecipe>& counter_recipes(const std::string& name);

struct CounterChoice {
  std::vector<const CounterRecipe*> recipes;
  std::vector<std::string> taken;
  std::vector<std::string> unknown;   // to this chip
  std::vector<std::string> left_out;  // they would take another pass
  // Names without those that several recipes share.
  std::vector<const char*> vendors() const;
  std::vector<gpu::CountedMetric> metrics() const;
};

// `passes`: how many the chip needs for metrics of these names, 0 where it does not know one of them.
CounterChoice choose_counters(const std::vector<std::string>& asked,
                              const std::function<std::size_t(const std::vector<const char*>&)>& passes);

}  // namespace leadline::nvidia
