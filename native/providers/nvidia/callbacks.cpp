#include "providers/nvidia/callbacks.h"

#include <algorithm>
#include <cstring>

#include "base/clock.h"
#include "base/ids.h"
#include "gpu/measure.h"
#include "gpu/recording.h"

namespace leadline::nvidia {
namespace {

// One per thread; plain data, so that it needs no destruction and may be touched at any time of a thread's life.
struct ThreadState {
  std::uint32_t session = 0;
  std::uint32_t depth = 0;        // nested API calls
  std::uint32_t stretch = 0;      // when the outermost began, see Callbacks::state_
  std::uint32_t correlation = 0;  // of the outermost
  std::int64_t start_ns = 0;
  std::int64_t cpu_ns = 0;  // CPU time of the thread when its wait began
  leadline_context context = 0;
  leadline_gpu_api_event event{};  // what BEGIN said, for END
  bool captured = false;           // the call became a graph node: nothing runs now
  void* device_context = nullptr;  // the last context asked for, and its device
  std::int32_t device = -1;
};
thread_local constinit ThreadState state;

// The calling thread's. A call may begin in one session and end in the next, or never be told to end: what is left of
// it must not make the thread's further calls look like inner ones.
ThreadState& state_in(std::uint32_t session) noexcept {
  if (state.session != session) {
    state = {};
    state.session = session;
  }
  return state;
}

// Gives the thread's ring of marks back when the thread ends. It shares the registry, since a thread may outlive the
// measuring that the registry belongs to.
struct MarksOfThread {
  std::shared_ptr<gpu::MarksRegistry> registry;
  std::uint32_t index = gpu::MarksRegistry::kNone;
  std::uint32_t get(const std::shared_ptr<gpu::MarksRegistry>& of) noexcept {
    if (registry != of) {
      if (registry) registry->give_back(index);
      registry = of;
      index = of->take();
    }
    return index;
  }
  ~MarksOfThread() {
    if (registry) registry->give_back(index);
  }
};
thread_local MarksOfThread marks_of_thread;

template <class T>
T argument(const void* params, std::int8_t offset) noexcept {
  T value;
  std::memcpy(&value, static_cast<const char*>(params) + offset, sizeof value);
  return value;
}

bool waits(leadline_gpu_kind kind) { return kind == LEADLINE_GPU_SYNC; }

void end_call(const leadline_gpu_api_event& call, std::int64_t time_ns) noexcept {
  leadline_event event{};
  event.domain = LEADLINE_DOMAIN_GPU_API;
  event.phase = LEADLINE_END;
  event.time_ns = time_ns;
  event.of.gpu_api = call;
  leadline_monitor_emit(&event);
}

}  // namespace

std::uint32_t Callbacks::next_session() noexcept {
  static std::atomic<std::uint32_t> sessions{0};
  return sessions.fetch_add(1, std::memory_order_relaxed) + 1;
}

void Callbacks::mark(std::int64_t time_ns, leadline_context context) noexcept {
  const std::uint32_t thread = marks_of_thread.get(marks_);
  if (gpu::ThreadMarks* ring = marks_->at(thread)) ring->add(time_ns, context);
  if (gpu::Recorder* recorder = recorder_.load(std::memory_order_acquire)) recorder->mark(thread, time_ns, context);
}

void Callbacks::handle(cupti::Domain domain, std::uint32_t cbid, const void* data) noexcept {
  if (!data) return;
  const std::uint32_t now = state_.load(std::memory_order_acquire);
  if (domain == cupti::Domain::kDriver || domain == cupti::Domain::kRuntime) {
    const auto& api = *static_cast<const cupti::CallbackData*>(data);
    const ApiCall* call = calls_.find(domain, cbid);
    if (!call || !call->followed) return;
    if (api.site == cupti::Site::kExit) return leave(*call, api);
    if (now != kClosed) enter(*call, api, now);
  } else if (domain == cupti::Domain::kResource && now != kClosed) {
    resource(static_cast<cupti::Resource>(cbid), *static_cast<const cupti::ResourceData*>(data), tells(now));
  }
}

std::int32_t Callbacks::device_of(void* context) noexcept {
  if (!context) return -1;
  ThreadState& thread = state_in(session_);
  if (thread.device_context != context) {
    std::uint32_t device = 0;
    const bool known = cupti_.get_device_id && cupti_.get_device_id(context, &device) == cupti::kSuccess;
    thread.device_context = context;
    thread.device = known ? static_cast<std::int32_t>(device) : -1;
  }
  return thread.device;
}

std::int64_t Callbacks::stream_of(const ApiCall& call, const cupti::CallbackData& data) noexcept {
  if (call.arguments.stream == ArgumentLayout::kNone || !data.params || !data.context || !cupti_.get_stream_id)
    return -1;
  std::uint32_t id = 0;
  void* stream = argument<void*>(data.params, call.arguments.stream);
  const auto result = cupti_.get_stream_id(data.context, stream, call.per_thread_stream ? 1 : 0, &id);
  return result == cupti::kSuccess ? std::int64_t{id} : -1;
}

void Callbacks::enter(const ApiCall& call, const cupti::CallbackData& data, std::uint32_t now) noexcept {
  ThreadState& thread = state_in(session_);
  const std::uint32_t marks = marks_of_thread.get(marks_);
  if (thread.depth++ > 0) {
    if (call.makes_work && data.correlation_id != thread.correlation) {
      const gpu::Launch inner{thread.context,     thread.start_ns,       marks, static_cast<std::uint8_t>(call.kind),
                              thread.correlation, !tells(thread.stretch)};
      tables_.launches.put(data.correlation_id, inner, false);
      if (gpu::Recorder* recorder = recorder_.load(std::memory_order_acquire))
        inner.paused ? recorder->paused_call(data.correlation_id) : recorder->inner_call(data.correlation_id, inner);
    }
    return;
  }
  thread.stretch = now;
  const bool told = tells(now);
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
  thread.correlation = data.correlation_id;
  thread.captured = false;
  thread.start_ns = leadline_monitor_now();
  thread.event = api;
  gpu::Launch launch{0, thread.start_ns, marks, static_cast<std::uint8_t>(call.kind), 0, true};
  if (!told) {
    thread.context = 0;
    tables_.launches.put(data.correlation_id, launch, false);
    if (gpu::Recorder* recorder = recorder_.load(std::memory_order_acquire)) {
      recorder->paused_call(data.correlation_id);
    }
    return;
  }
  count_.fetch_add(1, std::memory_order_relaxed);
  leadline_event event{};
  event.domain = LEADLINE_DOMAIN_GPU_API;
  event.phase = LEADLINE_BEGIN;
  event.time_ns = thread.start_ns;
  event.of.gpu_api = api;
  leadline_monitor_emit(&event);
  thread.context = leadline_monitor_context();
  launch.context = thread.context;
  launch.paused = thread.context == 0;  // nobody listens any more
  tables_.launches.put(data.correlation_id, launch, call.makes_work && !launch.paused);
  if (gpu::ThreadMarks* ring = marks_->at(marks)) ring->add(thread.start_ns, thread.context);
  if (gpu::Recorder* recorder = recorder_.load(std::memory_order_acquire)) {
    recorder->api_begin(api, thread.context, thread.start_ns, marks);
  }
  if (waits(call.kind)) thread.cpu_ns = thread_cpu_ns();
}

void Callbacks::leave(const ApiCall& call, const cupti::CallbackData& data) noexcept {
  ThreadState& thread = state_in(session_);
  if (thread.depth == 0) return;  // began before measuring did
  if (--thread.depth > 0) return;
  const std::int64_t cpu_ns = waits(call.kind) ? thread_cpu_ns() : 0;
  const std::int64_t now = leadline_monitor_now();
  // How long a call took around which measuring rested or went on is not known.
  const std::uint32_t present = state_.load(std::memory_order_acquire);
  const bool told = tells(thread.stretch) && (present == thread.stretch || present == kClosed);
  // Both APIs return an int-sized status, zero for success.
  const bool failed = data.return_value && *static_cast<const std::int32_t*>(data.return_value) != 0;
  if ((failed || thread.captured) && call.makes_work) tables_.launches.cancel(thread.correlation);
  if (!failed && (call.kind == LEADLINE_GPU_ALLOC || call.kind == LEADLINE_GPU_FREE)) {
    book_memory(call, data, thread.event.bytes, told);
  }
  if (!told) {
    // Who heard its begin hears its end; the monitor knows when the pause was.
    if (tells(thread.stretch)) end_call(thread.event, now);
    thread.context = 0;
    return;
  }
  if (waits(call.kind)) {
    if (time_waits_.load(std::memory_order_relaxed)) {
      gpu::emit_measure(thread.context, MetricKind::kSyncTime, now - thread.start_ns, -1, now);
    }
    // Whether the driver spins or sleeps is the program's choice (cudaDeviceScheduleBlockingSync) and the driver's.
    const std::int64_t ran_ns = std::clamp<std::int64_t>(cpu_ns - thread.cpu_ns, 0, now - thread.start_ns);
    gpu::emit_measure(thread.context, MetricKind::kSyncRunningTime, ran_ns, -1, now);
  }
  end_call(thread.event, now);
  if (gpu::ThreadMarks* ring = marks_->at(marks_of_thread.get(marks_))) ring->add(now, 0);
  if (gpu::Recorder* recorder = recorder_.load(std::memory_order_acquire)) {
    recorder->api_end(thread.event, now, marks_of_thread.get(marks_), failed || thread.captured);
  }
  thread.context = 0;
}

void Callbacks::book_memory(const ApiCall& call, const cupti::CallbackData& data, std::int64_t bytes,
                            bool told) noexcept {
  const ArgumentLayout& at = call.arguments;
  const std::int64_t now = leadline_monitor_now();
  if (call.kind == LEADLINE_GPU_ALLOC) {
    if (bytes == 0 || at.address_out == ArgumentLayout::kNone || !data.params) return;
    const auto* out = argument<const std::uint64_t*>(data.params, at.address_out);
    if (out && !tables_.allocations.taken(*out, bytes, told)) {
      gpu::count_loss(LossKind::kMemoryEventsDropped, 1, nullptr);
    }
    if (told) gpu::emit_measure(state.context, MetricKind::kDeviceAllocBytes, bytes, state.event.device, now);
    return;
  }
  if (at.address == ArgumentLayout::kNone || !data.params) return;
  const auto address = argument<std::uint64_t>(data.params, at.address);
  if (address == 0) return;
  const gpu::Allocations::Given given = tables_.allocations.given_back(address);
  if (!told || given.unmeasured) return;
  if (given.bytes) {
    gpu::emit_measure(state.context, MetricKind::kDeviceFreeBytes, *given.bytes, state.event.device, now);
  } else {
    gpu::count_loss(given.busy ? LossKind::kMemoryEventsDropped : LossKind::kFreeUnknown, 1, nullptr);
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
      if (state.device_context == data.context) state.device_context = nullptr;
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
  gpu::Recorder* recorder = recorder_.load(std::memory_order_acquire);
  try {
    const auto key = [](const void* handle) {
      return static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(handle));
    };
    std::uint64_t node = 0;
    std::uint64_t original = 0;
    // What is captured while measuring rests has no path: it hangs below its launch.
    const leadline_context here = told ? leadline_monitor_context() : 0;
    ThreadState& thread = state_in(session_);
    // A graph is also cloned by cuGraphClone and as the child of another, which says nothing of where it came from.
    const bool makes_executable = thread.depth > 0 && thread.event.kind == LEADLINE_GPU_GRAPH_INSTANTIATE;
    const leadline_context instantiating = makes_executable ? thread.context : 0;
    switch (which) {
      case cupti::Resource::kGraphNodeCreated:
        if (cupti_.get_graph_node_id(data.node, &node) != cupti::kSuccess) return;
        // Inside a launch being captured the place is the launch itself; else where the program builds its graph by
        // hand.
        thread.captured = true;
        tables_.graphs.created(node, key(data.graph), here);
        if (recorder) recorder->graph_node(node, 0, key(data.graph), here);
        return;
      case cupti::Resource::kGraphNodeCloned:
        if (cupti_.get_graph_node_id(data.node, &node) != cupti::kSuccess ||
            cupti_.get_graph_node_id(data.original_node, &original) != cupti::kSuccess) {
          return;
        }
        tables_.graphs.cloned(node, original, key(data.graph_exec ? data.graph_exec : data.graph), instantiating);
        if (recorder) recorder->graph_node(node, original, key(data.graph), instantiating);
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
