#include "providers/nvidia/callbacks.h"
#include "providers/nvidia/pc_sampling.h"

#include "base/ids.h"
#include "gpu/measure.h"
#include "gpu/recording.h"
#include "providers/nvidia/kernel_replay.h"

namespace leadline::nvidia {
namespace {

// The last context that the thread was asked for, and its device; plain data, so that it may be touched at any time of
// a thread's life. A context may be destroyed and another come to stand there, which is told.
struct LastDevice {
  const void* asked_by = nullptr;
  void* context = nullptr;
  std::int32_t device = -1;
};
// Read at each call, see ThreadState in gpu/api_calls.cpp.
constinit __attribute__((tls_model("initial-exec"))) thread_local LastDevice last;

using gpu::argument;

// Device memory that the call took or gave back.
std::optional<std::uint64_t> address_in(const ApiCall& call, const cupti::CallbackData& data) noexcept {
  const ArgumentLayout& at = call.arguments;
  if (!data.params) return std::nullopt;
  if (call.kind == LEADLINE_GPU_ALLOC && at.address_out != ArgumentLayout::kNone) {
    const auto* out = argument<const std::uint64_t*>(data.params, at.address_out);
    return out ? std::optional(*out) : std::nullopt;
  }
  if (call.kind == LEADLINE_GPU_FREE && at.address != ArgumentLayout::kNone) {
    return argument<std::uint64_t>(data.params, at.address);
  }
  return std::nullopt;
}

}  // namespace

void Callbacks::handle(cupti::Domain domain, std::uint32_t cbid, const void* data) noexcept {
  if (!data) return;
  if (domain == cupti::Domain::kDriver || domain == cupti::Domain::kRuntime) {
    const auto& api = *static_cast<const cupti::CallbackData*>(data);
    const ApiCall* call = names_.find(domain, cbid);
    if (!call || !call->followed) return;
    if (api.site == cupti::Site::kExit) return leave(*call, api);
    if (calls_.is_listening()) enter(*call, api);
  } else if (domain == cupti::Domain::kResource && calls_.is_listening()) {
    resource(static_cast<cupti::Resource>(cbid), *static_cast<const cupti::ResourceData*>(data), calls_.is_open());
  }
}

std::int32_t Callbacks::device_of(void* context) noexcept {
  if (!context) return -1;
  if (last.context != context || last.asked_by != this) {
    std::uint32_t device = 0;
    const bool known = cupti_.get_device_id && cupti_.get_device_id(context, &device) == cupti::kSuccess;
    last = {this, context, known ? static_cast<std::int32_t>(device) : -1};
  }
  return last.device;
}

std::int64_t Callbacks::stream_of(const ApiCall& call, const cupti::CallbackData& data) noexcept {
  if (call.arguments.stream == ArgumentLayout::kNone || !data.params || !data.context || !cupti_.get_stream_id)
    return -1;
  std::uint32_t id = 0;
  void* stream = argument<void*>(data.params, call.arguments.stream);
  const auto result = cupti_.get_stream_id(data.context, stream, call.per_thread_stream ? 1 : 0, &id);
  return result == cupti::kSuccess ? std::int64_t{id} : -1;
}

void Callbacks::enter(const ApiCall& call, const cupti::CallbackData& data) noexcept {
  const bool moves = call.kind == LEADLINE_GPU_COPY || call.kind == LEADLINE_GPU_SET;
  if (!calls_.enter(call.kind, call.makes_work, data.correlation_id)) return;
  leadline_gpu_api_event api{};
  api.name = call.name.c_str();
  api.kind = call.kind;
  api.correlation = data.correlation_id;
  api.device = device_of(data.context);
  api.stream = -1;
  api.awaits = -1;
  const ArgumentLayout& at = call.arguments;
  if (at.bytes != ArgumentLayout::kNone && data.params) {
    const std::size_t rows = at.rows == ArgumentLayout::kNone ? 1 : argument<std::size_t>(data.params, at.rows);
    api.bytes = static_cast<std::int64_t>(argument<std::size_t>(data.params, at.bytes) * rows);
  }
  // Stream numbers cost a look-up in CUPTI; launches and copies get theirs from the record.
  if (call.kind == LEADLINE_GPU_SYNC || call.kind == LEADLINE_GPU_STREAM_WAIT ||
      call.kind == LEADLINE_GPU_EVENT_RECORD) {
    const std::int64_t stream = stream_of(call, data);
    if (call.kind != LEADLINE_GPU_SYNC) api.stream = stream;
    if (call.kind == LEADLINE_GPU_SYNC) api.awaits = stream;
    if (at.event != ArgumentLayout::kNone && data.params) {
      const void* event = argument<const void*>(data.params, at.event);
      if (call.kind == LEADLINE_GPU_EVENT_RECORD) {
        tables_.events.record(event, data.correlation_id, stream);
      } else {
        const gpu::EventMap::Recorded recorded = tables_.events.find(event);
        api.awaits = recorded.stream;
        api.awaits_correlation = recorded.correlation;
      }
    }
  }
  const bool is_nothing = moves && at.bytes != ArgumentLayout::kNone && data.params && api.bytes == 0;
  const bool expected = moves ? copies_expected_ && !is_nothing : kernels_expected_;
  calls_.begin(api, call.makes_work && expected);  // no record comes of a copy of no bytes
  if (tells_launches_ && call.kind == LEADLINE_GPU_LAUNCH) {
    gpu::KernelRun run;
    run.context = calls_.open_call().place;
    run.correlation = run.call = data.correlation_id;
    const bool on_stream = at.stream != ArgumentLayout::kNone && data.params != nullptr;
    // What number its stream has is asked for where the launch is sampled.
    PcSampler::launching(run, data.symbol_name,
                         {on_stream ? data.context : nullptr,
                          on_stream ? argument<void*>(data.params, at.stream) : nullptr, call.per_thread_stream});
  }
  if (replay_ != nullptr && replay_->is_busy() &&
      (call.kind == LEADLINE_GPU_LAUNCH || call.kind == LEADLINE_GPU_GRAPH_LAUNCH)) {
    const bool graph = call.kind == LEADLINE_GPU_GRAPH_LAUNCH;
    replay_->entering(data.context, api.device, graph ? KernelReplay::Launch::kGraph : KernelReplay::Launch::kKernel,
                      {calls_.open_call().place, data.correlation_id, stream_of(call, data), data.symbol_name});
  }
}

void Callbacks::leave(const ApiCall& call, const cupti::CallbackData& data) noexcept {
  // Both APIs return an int-sized status, zero for success.
  const bool failed = data.return_value && *static_cast<const std::int32_t*>(data.return_value) != 0;
  if (replay_ != nullptr && calls_.is_outermost() && replay_->leaving(failed)) {
    tables_.launches.cancel(calls_.place_in_log(), data.correlation_id);  // no record may come
  }
  if (call.kind == LEADLINE_GPU_GRAPH_INSTANTIATE && calls_.is_outermost()) instantiated();
  calls_.leave(call.kind, call.makes_work, failed,
               calls_.is_outermost() && !failed ? address_in(call, data) : std::nullopt);
}

void Callbacks::instantiated() noexcept {
  gpu::Recorder* recorder = calls_.recorder();
  const gpu::ApiCalls::Open open = calls_.open_call();
  try {
    tables_.graphs.instantiated(open.correlation, [&](std::uint64_t node, std::uint64_t clone) {
      if (recorder) recorder->graph_node(node, clone, 0, open.place);
    });
  } catch (...) {
    gpu::count_loss(LossKind::kInternalError, 1, "No memory to keep a CUDA graph's path.");
  }
}

void Callbacks::resource(cupti::Resource which, const cupti::ResourceData& data, bool told) noexcept {
  switch (which) {
    case cupti::Resource::kModuleLoaded:
    case cupti::Resource::kModuleUnloadStarting: {
      if (!data.descriptor || !leadline_monitor_active(LEADLINE_DOMAIN_GPU_MODULE)) return;
      const auto& module = *static_cast<const cupti::ModuleData*>(data.descriptor);
      leadline_event event{};
      event.domain = LEADLINE_DOMAIN_GPU_MODULE;
      event.phase = LEADLINE_INSTANT;
      event.time_ns = leadline_monitor_now();
      event.of.gpu_module.module = module.module_id;
      event.of.gpu_module.image = module.image;
      event.of.gpu_module.image_bytes = module.image_bytes;
      event.of.gpu_module.device = device_of(data.context);
      event.of.gpu_module.loaded = which == cupti::Resource::kModuleLoaded ? 1 : 0;
      leadline_monitor_emit(&event);
      return;
    }
    case cupti::Resource::kContextDestroyStarting:
      if (last.context == data.context) last.context = nullptr;
      return;
    case cupti::Resource::kGraphNodeCreated:
    case cupti::Resource::kGraphNodeCloned:
    case cupti::Resource::kGraphNodeDestroyStarting:
    case cupti::Resource::kGraphDestroyStarting:
    case cupti::Resource::kGraphExecDestroyStarting:
      if (data.descriptor) graph(which, *static_cast<const cupti::GraphData*>(data.descriptor), told);
      return;
    default:
      return;
  }
}

void Callbacks::graph(cupti::Resource which, const cupti::GraphData& data, bool told) noexcept {
  if (!cupti_.get_graph_node_id) return;
  graphs_seen_.store(true, std::memory_order_relaxed);
  gpu::Recorder* recorder = calls_.recorder();
  try {
    const auto key = [](const void* handle) {
      return static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(handle));
    };
    std::uint64_t node = 0;
    std::uint64_t original = 0;
    // What is captured while measuring rests has no path: it hangs below its launch.
    const leadline_context here = told ? leadline_monitor_context() : 0;
    const gpu::ApiCalls::Open open = calls_.open_call();
    // A graph is also cloned by cuGraphClone and as the child of another, which says nothing of where it came from.
    const bool makes_executable = open.any && open.kind == LEADLINE_GPU_GRAPH_INSTANTIATE;
    const gpu::GraphMaking making =
        makes_executable ? gpu::GraphMaking{open.place, open.correlation} : gpu::GraphMaking{};
    switch (which) {
      case cupti::Resource::kGraphNodeCreated:
        if (cupti_.get_graph_node_id(data.node, &node) != cupti::kSuccess) return;
        // Inside a launch being captured the place is the launch itself; else where the program builds its graph by
        // hand.
        calls_.captured();
        if (replay_ != nullptr) replay_->captured();
        tables_.graphs.created(node, key(data.graph), here, making);
        if (recorder) recorder->graph_node(node, 0, key(data.graph), here);
        return;
      case cupti::Resource::kGraphNodeCloned:
        if (cupti_.get_graph_node_id(data.node, &node) != cupti::kSuccess ||
            cupti_.get_graph_node_id(data.original_node, &original) != cupti::kSuccess) {
          return;
        }
        tables_.graphs.cloned(node, original, key(data.graph_exec ? data.graph_exec : data.graph), making,
                              data.node_type == cupti::kNodeOfGraph);
        if (recorder) recorder->graph_node(node, original, key(data.graph), making.place);
        return;
      case cupti::Resource::kGraphNodeDestroyStarting:
        if (cupti_.get_graph_node_id(data.node, &node) == cupti::kSuccess) tables_.graphs.node_destroyed(node);
        return;
      case cupti::Resource::kGraphDestroyStarting:
        tables_.graphs.graph_destroyed(key(data.graph));
        return;
      case cupti::Resource::kGraphExecDestroyStarting:
        tables_.graphs.graph_destroyed(key(data.graph_exec));
        return;
      default:
        return;
    }
  } catch (...) {
    gpu::count_loss(LossKind::kInternalError, 1, "No memory to keep a CUDA graph's path.");
  }
}

}  // namespace leadline::nvidia
