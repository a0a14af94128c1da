// The launch that is sampled, where no record will tell of it.
#include <thread>

#include "providers/nvidia/pc_sampling.h"
#include "providers/nvidia/pc_sampling_context.h"

namespace leadline::nvidia {
namespace {

struct Launching {
  gpu::KernelRun run;
  const char* mangled = nullptr;
  PcSampler::StreamOfLaunch on;
};
thread_local constinit Launching this_launch;

}  // namespace

void PcSampler::launching(const gpu::KernelRun& run, const char* mangled, const StreamOfLaunch& on) noexcept {
  this_launch = {run, mangled, on};
}

// Where a window holds one launch, and no record will tell of it, the launch is the one that has just been made.
void PcSampler::know_launch(const Context& context) {
  if (options_.switches.records != SampledRecords::kNone) return;
  if (context.launches != 1 || this_launch.mangled == nullptr || context.opened_by != std::this_thread::get_id())
    return;
  gpu::KernelRun run = this_launch.run;
  const StreamOfLaunch& on = this_launch.on;
  std::uint32_t stream = 0;
  const auto ask = library_.call().get_stream_id;
  if (ask != nullptr && on.context != nullptr &&
      ask(on.context, on.stream, on.per_thread ? 1 : 0, &stream) == cupti::kSuccess)
    run.stream = stream;
  run.device = context.device;
  run.start_ns = context.windows.back().start_ns;
  run.end_ns = context.windows.back().end_ns;
  samples_.ran(run, this_launch.mangled);
}

}  // namespace leadline::nvidia
