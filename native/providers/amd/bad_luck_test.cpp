// Memory runs out in callbacks of rocprofiler-sdk: the program's calls go on, no figure is more than the truth, and
// what is missing is counted.
#include <doctest/doctest.h>

#include <cstdint>
#include <map>
#include <string>
#include <thread>
#include <utility>

#include "testing/amd/fakes.h"
#include "testing/amd/scenario.h"
#include "testing/callback_memory.h"

// Each moment is a scenario of its own. The thread sanitizer would take minutes to see the same threads hundreds of
// times; other tests show them to it.
#ifndef __SANITIZE_THREAD__

namespace leadline::testing::rocm {
namespace {

std::map<std::int32_t, sdk::ApiCallback> callbacks;
sdk::BufferCallback buffer_callback = nullptr;
sdk::CorrelationRequest request = nullptr;

void in_callback(sdk::CallbackRecord record, sdk::UserData* user, void* data) {
  const InCallbackOfVendor here;
  callbacks.at(record.kind)(record, user, data);
}
void in_buffer_callback(sdk::ContextId context, sdk::BufferId buffer, sdk::RecordHeader** headers, std::size_t count,
                        void* data, std::uint64_t dropped) {
  const InCallbackOfVendor here;
  buffer_callback(context, buffer, headers, count, data, dropped);
}
int in_request(std::uint64_t thread, sdk::ContextId context, std::int32_t kind, std::int32_t operation,
               std::uint64_t internal, sdk::UserData* external, void* data) {
  const InCallbackOfVendor here;
  return request(thread, context, kind, operation, internal, external, data);
}

// The SDK is told of callbacks once in a process. Kernels are made known once, too: what is lost then stays lost.
void stand_around() {
  FakeRocm& rocm = FakeRocm::instance();
  if (request != nullptr) return;
  for (auto& [kind, service] : rocm.callbacks) {
    if (kind != rocm.kind_code()) callbacks[kind] = std::exchange(service.callback, in_callback);
  }
  buffer_callback = std::exchange(rocm.buffer_callback, in_buffer_callback);
  request = std::exchange(rocm.request, in_request);
}

// Lets the callbacks be what they were.
void stand_back() {
  FakeRocm& rocm = FakeRocm::instance();
  for (const auto& [kind, callback] : callbacks) rocm.callbacks[kind].callback = callback;
  rocm.buffer_callback = buffer_callback;
  rocm.request = request;
}

}  // namespace

TEST_CASE(
    "without memory at any moment of any callback of the SDK's the program goes on, and what is missing is counted") {
  const std::string folder = LEADLINE_AMD_SCENARIOS;
  std::uint64_t all = 0;
  for (const char* name : {"launches", "ranges", "scratch", "uneven_graph"}) {
    CAPTURE(name);
    std::uint64_t allocations = 0;
    const auto run = [&] {
      ScenarioResult result;
      std::thread([&] {
        result = run_scenario(folder + "/" + name + ".txt", LEADLINE_AMD_FAKES, stand_around, 0.001);
      }).join();
      return result;
    };
    CHECK(without_memory(run, &allocations) == "");
    all += allocations;
  }
  stand_back();
  CHECK(all > 5);
}

}  // namespace leadline::testing::rocm

#endif
