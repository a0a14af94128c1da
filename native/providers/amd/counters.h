// Hardware counters of AMD's devices by rocprofiler-sdk, dispatch by dispatch, in windows that cost no more than was
// asked for.
//
// While a window is open the SDK runs kernels one after the other and reads the counters of each, so a reading is of
// one kernel alone. The SDK takes the service only while it configures its tools. What a device cannot count in one
// pass is left out and said.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "gpu/counter_choice.h"
#include "gpu/counter_samples.h"
#include "providers/amd/agents.h"
#include "providers/amd/counters_abi.h"
#include "providers/amd/provider.h"
#include "providers/amd/sdk_library.h"

namespace leadline::amd {

// How AMD counts what may be asked for; see gpu::CounterRecipes.
const gpu::CounterRecipes& counter_recipes();

class DispatchCounter {
 public:
  explicit DispatchCounter(std::vector<std::string> asked) : asked_(std::move(asked)) {}
  DispatchCounter(const DispatchCounter&) = delete;
  DispatchCounter& operator=(const DispatchCounter&) = delete;

  // While the SDK configures its tools. False, with a sentence in details(), where nothing can be counted.
  bool set_up(const SdkFunctions& sdk, std::uint32_t version, const Agents& agents, sdk::BufferCallback callback);

  // Callbacks of the SDK. Which counters to read of a dispatch: on the thread that launches, so nothing here waits.
  void choose(const sdk::Dispatching& dispatch, sdk::CounterConfig* config) noexcept;
  void take(sdk::RecordHeader** headers, std::size_t count, std::uint64_t dropped) noexcept;

  // Of the thread of windows.
  void open();
  void close();

  // For how long kernels ran one after the other since it was asked last: the most that windows can have cost.
  std::int64_t take_serialised_ns() noexcept { return serialised_ns_.exchange(0, std::memory_order_relaxed); }

  gpu::CounterSamples& samples() noexcept { return samples_; }
  bool works() const noexcept { return !devices_.empty(); }
  CounterDetails details() const;

 private:
  struct Device {
    std::uint64_t agent = 0;
    std::int32_t index = -1;
    sdk::CounterConfig config;
    gpu::CounterChoice choice;
    std::vector<std::uint64_t> counters;  // of choice.vendors()
  };
  struct Counted {
    const Device* device = nullptr;
    std::int64_t start = 0;  // by the SDK's clock
    std::int64_t end = 0;
    std::map<std::uint64_t, double> values;  // by counter, of all instances
  };

  bool set_up(const GpuAgent& gpu, std::string* why);
  const Device* device_of(std::uint64_t agent) const noexcept;
  std::uint64_t counter_of(std::uint64_t instance);
  void refuse(const std::string& sentence);
  void give_batches();

  const std::vector<std::string> asked_;
  const SdkFunctions* sdk_ = nullptr;
  bool old_ = false;  // the layouts of before 1.0
  sdk::ContextId context_;
  sdk::BufferId buffer_;
  std::vector<Device> devices_;  // does not change once the service is there
  std::atomic<std::uint64_t> asked_for_{0};
  std::atomic<std::int64_t> serialised_ns_{0};
  std::int64_t opened_ns_ = 0;
  gpu::CounterSamples samples_;

  mutable std::mutex mutex_;                  // of everything below
  std::map<std::uint64_t, Counted> counted_;  // by dispatch, of the window that is open
  std::uint64_t counted_dispatches_ = 0;
  std::unordered_map<std::uint64_t, std::uint64_t> counter_of_instance_;
  CounterDetails said_;
};

}  // namespace leadline::amd
