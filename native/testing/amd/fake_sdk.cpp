// The fake rocprofiler-sdk: its exported functions over the state in fake_rocm.h, with the names and numbers of 1.0
// (`sdk_version` below 10000: of 0.6).
#include <array>
#include <cstring>

#include "testing/amd/fake_rocm.h"

using namespace leadline::testing::rocm;  // NOLINT: one file, exported C names only

// In fake_counted.cpp.
extern "C" sdk::Status fake_counters_of(std::uint64_t, sdk::CountersCallback, void*);
extern "C" sdk::Status fake_counter_info(sdk::CounterId, std::int32_t, void*);
extern "C" sdk::Status fake_create_config(std::uint64_t, sdk::CounterId*, std::size_t, sdk::CounterConfig*);

namespace {

FakeRocm& rocm() { return FakeRocm::instance(); }

constexpr std::array<const char*, 21> kCallbackKinds{"NONE",
                                                     "HSA_CORE_API",
                                                     "HSA_AMD_EXT_API",
                                                     "HSA_IMAGE_EXT_API",
                                                     "HSA_FINALIZE_EXT_API",
                                                     "HIP_RUNTIME_API",
                                                     "HIP_COMPILER_API",
                                                     "MARKER_CORE_API",
                                                     "MARKER_CONTROL_API",
                                                     "MARKER_NAME_API",
                                                     "CODE_OBJECT",
                                                     "SCRATCH_MEMORY",
                                                     "KERNEL_DISPATCH",
                                                     "MEMORY_COPY",
                                                     "RCCL_API",
                                                     "OMPT",
                                                     "MEMORY_ALLOCATION",
                                                     "RUNTIME_INITIALIZATION",
                                                     "ROCDECODE_API",
                                                     "ROCJPEG_API",
                                                     "HIP_STREAM"};
constexpr std::array<const char*, 13> kBufferKinds{"NONE",
                                                   "HSA_CORE_API",
                                                   "HSA_AMD_EXT_API",
                                                   "HSA_IMAGE_EXT_API",
                                                   "HSA_FINALIZE_EXT_API",
                                                   "HIP_RUNTIME_API",
                                                   "HIP_COMPILER_API",
                                                   "MARKER_CORE_API",
                                                   "MARKER_CONTROL_API",
                                                   "MARKER_NAME_API",
                                                   "MEMORY_COPY",
                                                   "KERNEL_DISPATCH",
                                                   "SCRATCH_MEMORY"};
constexpr std::array<const char*, 3> kRccl{"ncclGetVersion", "ncclAllReduce", "ncclGroupEnd"};
constexpr std::array<const char*, 3> kHsa{"hsa_amd_queue_get_info", "hsa_amd_memory_async_copy",
                                          "hsa_amd_signal_wait_any"};
constexpr std::array<const char*, 6> kMarkers{"roctxMarkA",       "roctxRangePushA", "roctxRangePop",
                                              "roctxRangeStartA", "roctxRangeStop",  "roctxGetThreadId"};

template <std::size_t kCount>
sdk::Status name_of(const std::array<const char*, kCount>& names, std::int32_t kind, const char** name,
                    std::uint64_t* length) {
  if (kind < 0 || static_cast<std::size_t>(kind) >= kCount) return 4;
  *name = names[static_cast<std::size_t>(kind)];
  if (length) *length = std::strlen(*name);
  return 0;
}

const char* operation_name(std::int32_t kind, std::int32_t operation) {
  const auto at = static_cast<std::size_t>(operation);
  if (kind == rocm().kind_rccl() && at < kRccl.size()) return kRccl[at];
  if (kind == rocm().kind_hsa() && at < kHsa.size()) return kHsa[at];
  if (kind == rocm().kind_hip() && operation >= 0 && operation < hip_operations()) return kHipCalls[operation];
  if (kind == rocm().kind_marker() && operation >= 0 && static_cast<std::size_t>(operation) < kMarkers.size())
    return kMarkers[static_cast<std::size_t>(operation)];
  return nullptr;
}

}  // namespace

extern "C" {

sdk::Status rocprofiler_get_version(std::uint32_t* major, std::uint32_t* minor, std::uint32_t* patch) {
  *major = rocm().sdk_version / 10000;
  *minor = rocm().sdk_version / 100 % 100;
  *patch = rocm().sdk_version % 100;
  return 0;
}
const char* rocprofiler_get_status_string(sdk::Status status) {
  return status == 0 ? "Success" : status == 38 ? "Permission denied" : "An error of the fake";
}
sdk::Status rocprofiler_get_timestamp(std::uint64_t* ns) {
  *ns = static_cast<std::uint64_t>(rocm().tick(0) + FakeRocm::kEpoch);
  return 0;
}
sdk::Status rocprofiler_is_initialized(int* status) {
  *status = rocm().initialized;
  return 0;
}
sdk::Status rocprofiler_is_finalized(int* status) {
  *status = 0;
  return 0;
}
sdk::Status rocprofiler_force_configure(sdk::Configure tool) {
  if (rocm().initialized != 0) return sdk::kConfigurationLocked;
  if (rocm().hip_started) rocm().blind = true;  // queues that are there already are not seen
  rocm().configure(tool);
  return 0;
}
sdk::Status rocprofiler_create_context(sdk::ContextId* context) {
  static std::uint64_t next = 1;
  context->handle = next++;
  return 0;
}
sdk::Status rocprofiler_start_context(sdk::ContextId context) {
  if (context.handle == rocm().sampling_context) {
    rocm().sampling_on = true;
  } else if (context.handle == rocm().counting_context) {
    rocm().counting_on = true;
  } else {
    rocm().active = true;
  }
  return 0;
}
sdk::Status rocprofiler_stop_context(sdk::ContextId context) {
  if (context.handle == rocm().sampling_context) rocm().sampling_on = false;
  if (context.handle == rocm().counting_context) rocm().counting_on = false;
  return 0;
}
sdk::Status rocprofiler_create_buffer(sdk::ContextId, std::size_t, std::size_t, sdk::BufferPolicy,
                                      sdk::BufferCallback callback, void*, sdk::BufferId* buffer) {
  if (rocm().refuses) return 38;
  if (rocm().buffer_callback == nullptr) {
    rocm().buffer_callback = callback;
    buffer->handle = 1;
  } else {
    buffer->handle = 2 + rocm().more_buffers.size();
    rocm().more_buffers[buffer->handle] = callback;
  }
  return 0;
}
sdk::Status rocprofiler_flush_buffer(sdk::BufferId buffer) {
  if (buffer.handle == 1) {
    rocm().flush();
  } else if (buffer.handle == rocm().counting_buffer) {
    rocm().flush_counters();
  } else {
    rocm().flush_samples();
  }
  return 0;
}
sdk::Status rocprofiler_iterate_agent_supported_counters(std::uint64_t agent, sdk::CountersCallback each, void* data) {
  return fake_counters_of(agent, each, data);
}
sdk::Status rocprofiler_query_counter_info(sdk::CounterId id, std::int32_t version, void* info) {
  return fake_counter_info(id, version, info);
}
sdk::Status rocprofiler_query_record_counter_id(std::uint64_t instance, sdk::CounterId* id) {
  id->handle = instance >> 8;
  return 0;
}
sdk::Status rocprofiler_create_counter_config(std::uint64_t agent, sdk::CounterId* ids, std::size_t count,
                                              sdk::CounterConfig* config) {
  return fake_create_config(agent, ids, count, config);
}
sdk::Status rocprofiler_destroy_counter_config(sdk::CounterConfig config) {
  rocm().counter_configs.erase(config.handle);
  return 0;
}
sdk::Status rocprofiler_configure_buffered_dispatch_counting_service(sdk::ContextId context, sdk::BufferId buffer,
                                                                     sdk::DispatchCallback choose, void* data) {
  if (rocm().initialized == 1) return sdk::kConfigurationLocked;
  if (rocm().counting_status != 0) return rocm().counting_status;
  rocm().counting_context = context.handle;
  rocm().counting_buffer = buffer.handle;
  rocm().choose_counters = choose;
  rocm().choose_data = data;
  return 0;
}
sdk::Status rocprofiler_query_pc_sampling_agent_configurations(std::uint64_t agent, sdk::SamplingConfigurations each,
                                                               void* data) {
  if (agent < 100) return 7;
  if (rocm().sampling_status != 0) return rocm().sampling_status;
  const bool by_traps = rocm().sampling_method == sdk::SamplingMethod::kHostTrap;
  const sdk::SamplingConfiguration one{sizeof one,
                                       rocm().sampling_method,
                                       by_traps ? sdk::SamplingUnit::kTime : sdk::SamplingUnit::kCycles,
                                       by_traps ? std::size_t{1} : std::size_t{256},
                                       std::size_t{1} << 31,
                                       by_traps ? 0 : sdk::kIntervalIsPowerOfTwo};
  return each(&one, 1, data);
}
sdk::Status rocprofiler_configure_pc_sampling_service(sdk::ContextId context, std::uint64_t, sdk::SamplingMethod method,
                                                      sdk::SamplingUnit, std::uint64_t interval, sdk::BufferId buffer,
                                                      int flags) {
  if (rocm().initialized == 1) return sdk::kConfigurationLocked;
  if (method != rocm().sampling_method || flags != 0) return 19;
  if (method == sdk::SamplingMethod::kStochastic && (interval & (interval - 1)) != 0) return 19;
  rocm().sampling_context = context.handle;
  rocm().sampling_buffer = buffer.handle;
  return 0;
}
sdk::Status rocprofiler_create_callback_thread(sdk::CallbackThread* thread) {
  thread->handle = 1;
  return 0;
}
sdk::Status rocprofiler_assign_callback_thread(sdk::BufferId, sdk::CallbackThread) { return 0; }
sdk::Status rocprofiler_configure_callback_tracing_service(sdk::ContextId, std::int32_t kind,
                                                           const std::int32_t* operations, std::size_t count,
                                                           sdk::ApiCallback callback, void* data) {
  const std::lock_guard lock(rocm().mutex);
  FakeRocm::Service service{{}, callback, data};
  for (std::size_t i = 0; i < count; ++i) {
    service.operations.insert(operations[i]);
    const char* name = operation_name(kind, operations[i]);
    if (name && (std::strstr(name, "Get") || std::strstr(name, "Query"))) ++rocm().noisy_operations;
  }
  rocm().callbacks[kind] = service;
  return 0;
}
sdk::Status rocprofiler_configure_buffer_tracing_service(sdk::ContextId, std::int32_t kind, const std::int32_t*,
                                                         std::size_t, sdk::BufferId) {
  rocm().buffered.insert(kind);
  return 0;
}
sdk::Status rocprofiler_configure_external_correlation_id_request_service(sdk::ContextId, const std::int32_t*,
                                                                          std::size_t, sdk::CorrelationRequest request,
                                                                          void*) {
  rocm().request = request;
  return 0;
}
sdk::Status rocprofiler_query_external_correlation_id_request_kind_name(std::int32_t kind, const char** name,
                                                                        std::uint64_t* length) {
  return name_of(kBufferKinds, kind, name, length);  // the same list, as far as we need it
}
sdk::Status rocprofiler_query_callback_tracing_kind_name(std::int32_t kind, const char** name, std::uint64_t* length) {
  if (kind == 20 && rocm().kind_stream() < 0) return 4;
  return name_of(kCallbackKinds, kind, name, length);
}
sdk::Status rocprofiler_query_buffer_tracing_kind_name(std::int32_t kind, const char** name, std::uint64_t* length) {
  return name_of(kBufferKinds, kind, name, length);
}
sdk::Status rocprofiler_query_callback_tracing_kind_operation_name(std::int32_t kind, std::int32_t operation,
                                                                   const char** name, std::uint64_t* length) {
  *name = operation_name(kind, operation);
  if (!*name) return 5;
  if (length) *length = std::strlen(*name);
  return 0;
}
sdk::Status rocprofiler_iterate_callback_tracing_kind_operations(std::int32_t kind, sdk::OperationCallback each,
                                                                 void* data) {
  for (std::int32_t operation = 0; operation_name(kind, operation); ++operation) each(kind, operation, data);
  return 0;
}
sdk::Status rocprofiler_query_available_agents(std::int32_t, sdk::AgentsCallback each, std::size_t size, void* data) {
  if (size > sizeof(sdk::Agent)) return 18;
  std::vector<sdk::Agent> agents(1 + rocm().devices.size());
  std::vector<sdk::MemoryBank> banks(rocm().devices.size());
  std::vector<std::vector<sdk::IoLink>> links(agents.size());
  std::vector<const void*> pointers;
  for (std::size_t i = 0; i < agents.size(); ++i) {
    sdk::Agent& agent = agents[i];
    agent.size = sizeof agent;
    agent.type = i == 0 ? sdk::AgentType::kCpu : sdk::AgentType::kGpu;
    agent.id = i == 0 ? 1 : 99 + i;
    if (i > 0) {
      const Device& device = rocm().devices[i - 1];
      agent.name = device.architecture.c_str();
      agent.product_name = device.product.c_str();
      agent.gfx_target_version = device.target;
      agent.compute_units = device.compute_units;
      agent.wave_front_size = device.wave;
      agent.max_waves_per_simd = device.max_waves;
      agent.simds_per_compute_unit = device.simds;
      agent.lds_kib = 64;
      agent.xccs = 8;
      agent.location = device.bus << 8;
      agent.logical_gpu = static_cast<std::int32_t>(i - 1);
      agent.node = static_cast<std::uint32_t>(i);
      agent.uuid = 0x1234'5678'0000'0000 + i;
      banks[i - 1] = {sdk::kPublicMemory, 0, 0, 0, device.memory_bytes};
      agent.memory_banks = 1;
      agent.memory_bank_list = &banks[i - 1];
      for (std::uint32_t to = 0; to < agents.size(); ++to) {  // node 0 is the processor's
        if (to == i) continue;
        sdk::IoLink link{};
        link.type = to == 0 ? sdk::kLinkPcie : sdk::kLinkXgmi;
        link.to_node = to;
        link.weight = to == 0 ? 20 : 15;
        link.max_mb_per_s = 64'000;
        links[i].push_back(link);
      }
      agent.io_links = static_cast<std::uint32_t>(links[i].size());
      agent.io_link_list = links[i].data();
    }
    pointers.push_back(&agent);
  }
  return each(sdk::kAgentVersion, pointers.data(), pointers.size(), data);
}

}  // extern "C"
