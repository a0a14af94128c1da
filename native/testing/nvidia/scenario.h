// Scenario files (testing/scenario_text.h) on the fake NVIDIA GPU. They may say besides:
//
//   cupti 130001 | driver 12000 | holder NAME | shares | refuse CODE | inner-ids | order reversed | hold-back 5 | drop
//   3 devices 2 | init CODE | whole-graphs launch ... how=driver|ex|cooperative|per-thread|fails yield TOOL / take-back
//   destroy-context device=0      lose-device
#pragma once

#include <string>

#include "testing/scenario_text.h"

namespace leadline::testing {

// `fakes`: folder with the fake libraries. Resets the fake GPU and the test monitor first.
ScenarioResult run_scenario(const std::string& file, const std::string& fakes);

}  // namespace leadline::testing
