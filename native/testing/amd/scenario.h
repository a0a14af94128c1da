// Scenario files (testing/scenario_text.h) on the fake AMD GPU. They may say besides:
//
//   sdk 600 | order reversed | hold-back 5 | drop 3 | devices 2 | blind | unasked
//   launch ... how=driver|ex|cooperative|fails
//   range NAME / pop       of roctx
//
// Of the scenarios of NVIDIA's fakes those that say nothing of the vendor run here too: see neutral().
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "testing/scenario_text.h"

namespace leadline::testing::rocm {

// `fakes`: folder with the fake libraries. Resets the fake GPU and the test monitor first. `started`: called whenever
// the provider has been started. `wait_at_stop_s`: the fakes hand everything over when they are asked to, so this is
// for what was lost only.
ScenarioResult run_scenario(const std::string& file, const std::string& fakes,
                            const std::function<void()>& started = {}, double wait_at_stop_s = 0.05);

// What a line of an NVIDIA scenario's right side is here: calls by HIP's names, memory set by a kernel, waits measured
// around their call; empty: nothing that could be compared.
std::string in_hip_words(const std::string& line);

}  // namespace leadline::testing::rocm
