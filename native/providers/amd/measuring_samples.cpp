// Where a measuring meets the parts that sample instructions and read counters, in windows.
#include "providers/amd/measuring.h"

namespace leadline::amd {
namespace {

constexpr std::int64_t kFirstWindowNs = 2'000'000;  // what one is thought to cost, until one was measured

}  // namespace

void Measuring::make_windows() {
  using Windows = gpu::SamplingWindows;
  const auto is_ready = [this] { return callbacks_.launches() > 0; };
  // The thread of windows outlives the SDK where that ends first, and then calls it no more.
  const auto if_sdk_lives = [](auto call) {
    return [call] {
      if (!sdk_has_ended()) call();
    };
  };
  const auto make = [&](auto* part) {
    return std::make_unique<Windows>(
        options_.instruction_budget, options_.sample_window_s, kFirstWindowNs,
        Windows::Owner{is_ready, if_sdk_lives([part] { part->open(); }), if_sdk_lives([part] { part->close(); })});
  };
  if (sampler_ != nullptr && sampler_->works()) windows_ = make(sampler_);
  if (counters_ != nullptr && counters_->works()) counting_windows_ = make(counters_);
}

// Under fold_mutex_.
void Measuring::settle_samples(std::int64_t until_ns) {
  if (counting_windows_) {
    counters_->samples().settle(until_ns, [this](const gpu::KernelRun& run, const std::string& mangled,
                                                 const std::vector<leadline_measure>& measures) {
      fold_.tell_counters(run, mangled, measures);
    });
    counting_windows_->spend(counters_->take_serialised_ns());
  }
  if (!windows_) return;
  sampler_->samples().settle(until_ns, [this](const gpu::KernelRun& run, const std::string& mangled,
                                              const std::vector<leadline_activity_child>& instructions) {
    fold_.tell_instructions(run, mangled, instructions);
  });
  windows_->spend(sampler_->samples().take_slowdown_ns());
}

void Measuring::describe_samples(Details& details) const {
  const auto counters_of = [](const std::unique_ptr<gpu::SamplingWindows>& windows) {
    return windows ? windows->counters() : gpu::WindowCounters{};
  };
  if (sampler_ != nullptr) {
    details.instructions = sampler_->details();
    details.instructions->windows = counters_of(windows_);
  }
  if (counters_ != nullptr) {
    details.counters = counters_->details();
    details.counters->windows = counters_of(counting_windows_);
  }
}

}  // namespace leadline::amd
