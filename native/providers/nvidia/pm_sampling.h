// Readings of hardware counters by CUPTI, of whole devices at fixed intervals, in windows that cost no more than was
// asked for. Nothing is serialised and nothing replayed, so what a chip cannot count in one pass is left out and said.
//
// All of CUPTI's calls are made by the thread that opens and closes windows; the program's threads only leave word of
// their devices. What is read goes to gpu::CounterSamples, which knows the kernels. What CUPTI refuses is one sentence,
// after which the rest of the provider goes on as without.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "gpu/clock_relation.h"
#include "gpu/counter_samples.h"
#include "gpu/sampling_windows.h"
#include "providers/nvidia/cupti_library.h"
#include "providers/nvidia/provider.h"

namespace leadline::nvidia {

struct PmSamplingOptions {
  std::vector<std::string> metrics;   // of counter_names()
  double budget = 0.02;               // share of the time
  double window_s = 0.05;             // 0: windows are opened and closed by who asks, as tests do
  std::int64_t interval_ns = 50'000;  // between two readings
};

PmSamplingOptions counter_options(const Options& options);

class PmSampler {
 public:
  PmSampler(const CuptiLibrary& library, PmSamplingOptions options);
  ~PmSampler();
  PmSampler(const PmSampler&) = delete;
  PmSampler& operator=(const PmSampler&) = delete;

  // False where this CUPTI cannot count, said in details().
  bool begin();
  // In callbacks of CUPTI: the program has a context on it.
  void device_seen(std::int32_t device) noexcept;
  // No window is opened any more, the last one is taken. False: a call into CUPTI has not come back, so this must not
  // be destroyed.
  bool stop();
  // Lets go of CUPTI's objects. After everything else is read: some releases end the whole of CUPTI with them.
  void release() noexcept;

  gpu::SamplingWindows& windows() noexcept { return windows_; }
  gpu::CounterSamples& samples() noexcept { return samples_; }
  CounterDetails details() const;

 private:
  struct Device;

  void prepare();
  void open_window();
  void close_window();
  void set_up_new_devices();
  bool set_up(Device& device, std::string* why);
  bool choose(Device& device, const std::vector<std::uint8_t>& available, std::string* why);
  bool make_image(Device& device);
  void read(Device& device, std::int64_t closed_ns);
  bool take(Device& device, gpu::CounterBatch& batch);
  void align(Device& device, gpu::CounterBatch& batch, std::int64_t closed_ns);
  void refuse(const std::string& sentence);
  std::string refusal(cupti::Result result, const char* doing) const;

  const CuptiLibrary& library_;
  const PmSamplingOptions options_;
  const PmSamplingFunctions& call_;
  gpu::CounterSamples samples_;

  static constexpr std::size_t kMostDevices = 64;
  std::atomic<std::uint64_t> seen_{0};            // a bit for each device that the program uses
  std::uint64_t known_ = 0;                       // those that were set up, or refused; of the thread of windows
  std::vector<std::unique_ptr<Device>> devices_;  // of the thread of windows
  mutable std::mutex mutex_;                      // of what details() says
  CounterDetails said_;
  std::set<std::string> sentences_;
  gpu::SamplingWindows windows_;
};

}  // namespace leadline::nvidia
