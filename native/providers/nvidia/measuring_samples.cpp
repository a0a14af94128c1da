// Where a measuring meets the part that samples instructions.
#include "gpu/call_arguments.h"
#include "gpu/measure.h"
#include "providers/nvidia/in_callback.h"
#include "providers/nvidia/measuring.h"

namespace leadline::nvidia {

PcSamplingOptions sampling_options(const Options& options) {
  PcSamplingOptions sampling;
  if (options.instructions == "serialised") sampling.mode = cupti::SamplingMode::kSerialised;
  sampling.budget = options.instruction_budget;
  sampling.window_s = options.sample_window_s;
  sampling.period = static_cast<std::uint32_t>(options.sample_period);
  sampling.code_folder = options.code_folder;
  sampling.code_bytes = static_cast<std::uint64_t>(options.code_bytes);
  sampling.switches = pc_switches();
  if (options.sample_window_s <= 0) sampling.switches.after = sampling.switches.at_once = 0;  // who asks decides
  if (sampling.switches.mode == "serialised") sampling.mode = cupti::SamplingMode::kSerialised;
  if (sampling.switches.mode == "continuous") sampling.mode = cupti::SamplingMode::kContinuous;
  return sampling;
}

PmSamplingOptions counter_options(const Options& options) {
  PmSamplingOptions counting;
  counting.metrics = options.gpu_metrics;
  counting.budget = options.instruction_budget;
  if (options.sample_window_s <= 0) counting.window_s = 0;
  counting.interval_ns = options.counter_interval_ns;
  return counting;
}

KernelReplayOptions replay_options(const Options& options) {
  KernelReplayOptions replay;
  replay.metrics = options.gpu_metrics;
  replay.at_once = static_cast<std::size_t>(options.replay_launches);
  replay.budget = options.instruction_budget;
  if (options.sample_window_s <= 0) replay.window_s = 0;
  return replay;
}

// Contexts that were there before measuring began show at their first call.
void Measuring::sample_contexts(cupti::Domain domain, std::uint32_t cbid, const void* data) noexcept {
  static thread_local constinit void* last_seen = nullptr;
  const auto device_of = [this](void* context) {
    std::uint32_t device = 0;
    const auto ask = library_.call().get_device_id;
    return ask != nullptr && ask(context, &device) == cupti::kSuccess ? static_cast<std::int32_t>(device) : 0;
  };
  if (data == nullptr || !callbacks_.is_open()) return;
  if (domain == cupti::Domain::kDriver || domain == cupti::Domain::kRuntime) {
    const auto& api = *static_cast<const cupti::CallbackData*>(data);
    if (api.site != cupti::Site::kEnter || api.context == nullptr || api.context == last_seen) return;
    last_seen = api.context;
    return begin_with(api.context, device_of(api.context));
  }
  if (domain != cupti::Domain::kResource) return;
  const auto& resource = *static_cast<const cupti::ResourceData*>(data);
  switch (static_cast<cupti::Resource>(cbid)) {
    case cupti::Resource::kContextCreated:
      return begin_with(resource.context, device_of(resource.context));
    case cupti::Resource::kContextDestroyStarting:
      if (last_seen == resource.context) last_seen = nullptr;
      if (sampling_) sampler_->context_destroyed(resource.context);
      if (replaying_) replay_->context_destroyed(resource.context);
      return;
    case cupti::Resource::kModuleLoaded:
      if (sampling_ && resource.descriptor != nullptr) {
        const auto& module = *static_cast<const cupti::ModuleData*>(resource.descriptor);
        sampler_->code().keep(module.image, module.image_bytes);
      }
      return;
    case cupti::Resource::kModuleUnloadStarting:
      if (sampling_) sampler_->code_unloading(resource.context);
      return;
    default:
      return;
  }
}

void Measuring::begin_with(void* context, std::int32_t device) noexcept {
  if (sampling_) sampler_->context_created(context, device);
  if (counting_) counters_->device_seen(device);
}

// CUPTI asks for a name of the code that it loads, and says it with every sample of that code.
void Measuring::on_code(const void* image, std::size_t bytes, std::uint64_t* hash) {
  *hash = gpu::CodeObjects::identify(image, bytes);
}

// Before the driver begins a launch and after it has ended it, where samples of it may begin and end.
void Measuring::sample_launch(cupti::Domain domain, std::uint32_t cbid, const void* data) noexcept {
  const ApiCall* const call = data == nullptr ? nullptr : calls_.find(domain, cbid);
  if (call == nullptr) return;
  const auto& api = *static_cast<const cupti::CallbackData*>(data);
  const bool ends = api.site == cupti::Site::kExit;
  if (call->kind == LEADLINE_GPU_GRAPH_CREATE) {  // rare
    const bool failed = api.return_value != nullptr && *static_cast<const std::int32_t*>(api.return_value) != 0;
    const bool begin = call->name.find("BeginCapture") != std::string::npos;
    const bool end = call->name.find("EndCapture") != std::string::npos;
    if (ends && ((begin && !failed) || end)) sampler_->capture(begin);
    return;
  }
  if (domain != cupti::Domain::kDriver || call->kind != LEADLINE_GPU_LAUNCH || api.context == nullptr) return;
  if (ends) return sampler_->launch_ends(api.context);
  const std::int8_t at = call->arguments.stream;
  void* const stream =
      at != ArgumentLayout::kNone && api.params != nullptr ? gpu::argument<void*>(api.params, at) : nullptr;
  if (callbacks_.is_open()) sampler_->launch_begins(api.context, stream);
}

void Measuring::sample_window(bool open) {
  const auto turn = [open](gpu::SamplingWindows& windows) { open ? windows.open() : windows.close(); };
  if (sampling_) turn(sampler_->windows());
  if (counting_) turn(counters_->windows());
  if (replaying_) turn(replay_->windows());
}

void Measuring::settle_samples(std::int64_t until_ns) {
  if (counting_) {
    counters_->samples().settle(until_ns, [this](const gpu::KernelRun& run, const std::string& mangled,
                                                 const std::vector<leadline_measure>& measures) {
      fold_.tell_counters(run, mangled, measures);
    });
  }
  if (replaying_) {
    replay_->launches().settle(
        until_ns,
        [this](const gpu::KernelRun& run, const std::string& mangled, const std::vector<leadline_measure>& measures) {
          fold_.tell_counters(run, mangled, measures);
        },
        [this](const gpu::KernelRun& run, std::int64_t began_ns, const std::string& mangled,
               const std::vector<leadline_measure>& measures) {
          fold_.tell_unrecorded(run, began_ns, mangled, measures);
        });
  }
  if (!sampling_) return;
  sampler_->code().write_kept();
  sampler_->samples().settle(until_ns, [this](const gpu::KernelRun& run, const std::string& mangled,
                                              const std::vector<leadline_activity_child>& instructions) {
    fold_.tell_instructions(run, mangled, instructions);
  });
  sampler_->windows().spend(sampler_->samples().take_slowdown_ns());
}

}  // namespace leadline::nvidia
