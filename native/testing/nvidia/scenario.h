// Scenario files (testing/scenario_text.h) on the fake NVIDIA GPU. They may say besides:
//
//   cupti 130001 | driver 12000 | holder NAME | shares | refuse CODE | inner-ids | order reversed | hold-back 5 | drop
//   3 devices 2 | init CODE | whole-graphs launch ... how=driver|ex|cooperative|per-thread|fails yield TOOL / take-back
//   destroy-context device=0      lose-device
//   instructions continuous|serialised    the provider samples instructions; what each launch of a kernel gives:
//   pc KERNEL offset=16 stall=wait count=10 latency=4 [in=FUNCTION]    refuse-sampling CODE  refuse-mode 1|2
//   refuse-buffer  drop-samples N  buffer-full  late-samples on|off  at-once N    load-code TEXT / unload-code
//   window open|close                     a range of samples
#pragma once

#include <functional>
#include <string>

#include "testing/scenario_text.h"

namespace leadline::testing {

// `fakes`: folder with the fake libraries. Resets the fake GPU and the test monitor first. `started`: called whenever
// the provider has been started.
ScenarioResult run_scenario(const std::string& file, const std::string& fakes,
                            const std::function<void()>& started = {});

}  // namespace leadline::testing
