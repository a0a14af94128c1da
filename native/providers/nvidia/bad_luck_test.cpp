// Memory runs out in CUPTI's callbacks: the program's calls go on, no figure is more than the truth, and what is
// missing is counted.
#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <thread>
#include <utility>

#include "testing/callback_memory.h"
#include "testing/nvidia/fakes.h"
#include "testing/nvidia/scenario.h"

// Each moment is a scenario of its own. The thread sanitizer would take minutes to see the same threads hundreds of
// times; other tests show them to it.
#ifndef __SANITIZE_THREAD__

namespace leadline::testing {
namespace {

cupti::CallbackFunction callback = nullptr;
cupti::BufferRequested requested = nullptr;
cupti::BufferCompleted completed = nullptr;

void in_callback(void* user, cupti::Domain domain, std::uint32_t cbid, const void* data) {
  const InCallbackOfVendor here;
  callback(user, domain, cbid, data);
}
void in_requested(std::uint8_t** buffer, std::size_t* size, std::size_t* most) {
  const InCallbackOfVendor here;
  requested(buffer, size, most);
}
void in_completed(void* context, std::uint32_t stream, std::uint8_t* buffer, std::size_t size, std::size_t valid) {
  const InCallbackOfVendor here;
  completed(context, stream, buffer, size, valid);
}

// Once the provider has subscribed.
void stand_around() {
  FakeGpu& gpu = FakeGpu::instance();
  if (gpu.callback == nullptr || gpu.callback == in_callback) return;
  callback = std::exchange(gpu.callback, in_callback);
  requested = std::exchange(gpu.requested, in_requested);
  completed = std::exchange(gpu.completed, in_completed);
}

}  // namespace

TEST_CASE(
    "without memory at any moment of any callback of CUPTI's the program goes on, and what is missing is counted") {
  const std::string folder = LEADLINE_NVIDIA_SCENARIOS;
  std::uint64_t all = 0;
  for (const char* name : {"collectives", "events", "graphs", "latency", "launches", "memory", "paused"}) {
    CAPTURE(name);
    std::uint64_t allocations = 0;
    const auto run = [&] {
      // the provider asks for memory of its own for a thread's first call
      ScenarioResult result;
      std::thread([&] {
        result = run_scenario(folder + "/" + name + ".txt", LEADLINE_NVIDIA_FAKES, stand_around);
      }).join();
      return result;
    };
    CHECK(without_memory(run, &allocations) == "");
    all += allocations;
  }
  CHECK(all > 10);
}

}  // namespace leadline::testing

#endif
