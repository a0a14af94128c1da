// Which of CUPTI's metrics stand for ours on a chip: the first spellings that the chip knows and that can be counted
// together in one pass.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "gpu/counter_choice.h"

namespace leadline::nvidia {

using gpu::CounterChoice;
using gpu::CounterRecipe;
using gpu::listed;

// What a user may ask for ("occupancy", "dram", ...), in the order in which all of them are taken.
const std::vector<std::string>& counter_names();
// How to count it, best first; empty for an unknown name.
const std::vector<CounterRecipe>& counter_recipes(const std::string& name);

// `passes`: how many the chip needs for metrics of these names, 0 where it does not know one of them.
CounterChoice choose_counters(const std::vector<std::string>& asked,
                              const std::function<std::size_t(const std::vector<const char*>&)>& passes);

}  // namespace leadline::nvidia
