// Memory that runs out in the callbacks of a vendor's library, and nowhere else: neither in the fakes that call them
// nor in the test.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "testing/scenario_text.h"

namespace leadline::testing {

// Stands around one callback.
class InCallbackOfVendor {
 public:
  InCallbackOfVendor() noexcept;
  ~InCallbackOfVendor();
  InCallbackOfVendor(const InCallbackOfVendor&) = delete;
  InCallbackOfVendor& operator=(const InCallbackOfVendor&) = delete;

 private:
  std::uint64_t before_ = 0;
};

// `run` runs a scenario whose callbacks stand in InCallbackOfVendor: with memory, then with the first, second, ...
// allocation failing. Answers what was more than in truth, or missing and not counted; empty where nothing was.
// *allocations: how many callbacks make.
std::string without_memory(const std::function<ScenarioResult()>& run, std::uint64_t* allocations);

}  // namespace leadline::testing
