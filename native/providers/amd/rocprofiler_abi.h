// rocprofiler-sdk's binary interface, declared by us: what of it Leadline uses, in its own words.
//
// From the headers include/rocprofiler-sdk/*.h of ROCm/rocprofiler-sdk (releases 0.4 to 0.6, ROCm 6.2 to 6.4) and of
// ROCm/rocm-systems (1.0 and later, ROCm 7); tests/amd/test_abi.py compiles the same against the headers that the
// `triton` wheel ships (1.0). The numbers of kinds and operations differ between releases and are asked for by name
// (sdk_names.h), so none of them is here. Structures grow at their end and say their size, but for one
// (CallbackRecord).
#pragma once

#include <cstddef>
#include <cstdint>

namespace leadline::amd::sdk {

using Status = std::int32_t;  // rocprofiler_status_t
inline constexpr Status kSuccess = 0;
inline constexpr Status kConfigurationLocked = 16;
inline constexpr Status kFinalized = 21;

struct ContextId {
  std::uint64_t handle = 0;
};
struct BufferId {
  std::uint64_t handle = 0;
};
struct CallbackThread {
  std::uint64_t handle = 0;
};
union UserData {
  std::uint64_t value;
  void* pointer;
};

enum class Phase : std::int32_t { kNone = 0, kEnter = 1, kExit = 2 };  // of code objects: load and unload
enum class Category : std::uint32_t { kNone = 0, kTracing = 1, kPcSampling = 2, kCounters = 3 };
enum class BufferPolicy : std::int32_t { kNone = 0, kDiscard = 1, kLossless = 2 };
enum class AgentType : std::int32_t { kNone = 0, kCpu = 1, kGpu = 2 };
// The same in every release.
enum class CopyOperation : std::int32_t {
  kNone = 0,
  kHostToHost = 1,
  kHostToDevice = 2,
  kDeviceToHost = 3,
  kDeviceToDevice = 4
};

// What a callback is handed by value. With 1.0 the correlation id grew by `ancestor` in the middle of it. Every kind
// that Leadline asks for has a number above the phases', so the place of `kind` tells which of the two it is.
struct CallbackRecord {
  std::uint64_t context;
  std::uint64_t thread;
  std::uint64_t correlation_internal;
  UserData correlation_external;
  std::uint64_t ancestor;
  std::int32_t kind;
  std::int32_t operation;
  Phase phase;
  void* payload;
};
struct OldCallbackRecord {
  std::uint64_t context;
  std::uint64_t thread;
  std::uint64_t correlation_internal;
  UserData correlation_external;
  std::int32_t kind;
  std::int32_t operation;
  Phase phase;
  void* payload;
};
static_assert(sizeof(CallbackRecord) == sizeof(OldCallbackRecord) + 8);
inline constexpr std::int32_t kHighestPhase = 2;

struct RecordHeader {
  Category category;
  std::uint32_t kind;
  void* payload;
};

struct Dim3 {
  std::uint32_t x, y, z;
};

struct DispatchInfo {
  std::uint64_t size;
  std::uint64_t agent;
  std::uint64_t queue;
  std::uint64_t kernel;
  std::uint64_t dispatch;
  std::uint32_t private_segment;  // scratch bytes per work-item
  std::uint32_t group_segment;    // LDS bytes per work-group, static and dynamic
  Dim3 workgroup;
  Dim3 grid;  // in work-items
  std::uint8_t reserved[56];
};
static_assert(sizeof(DispatchInfo) == 128);

struct DispatchRecord {
  std::uint64_t size;
  std::int32_t kind;
  std::int32_t operation;
  std::uint64_t correlation_internal;
  UserData correlation_external;
  std::uint64_t thread;
  std::uint64_t start;
  std::uint64_t end;
  DispatchInfo info;
};

struct CopyRecord {
  std::uint64_t size;
  std::int32_t kind;
  CopyOperation operation;
  std::uint64_t correlation_internal;
  UserData correlation_external;
  std::uint64_t thread;
  std::uint64_t start;
  std::uint64_t end;
  std::uint64_t destination_agent;
  std::uint64_t source_agent;
  std::uint64_t bytes;
};

// The same in every release.
enum class ScratchOperation : std::int32_t { kNone = 0, kAllocate = 1, kFree = 2, kReclaim = 3 };

// Since 1.0; before, agent and queue stood elsewhere. From the vendor's repository: the wheel's headers leave it out.
struct ScratchRecord {
  std::uint64_t size;
  std::int32_t kind;
  ScratchOperation operation;
  std::uint64_t correlation_internal;
  UserData correlation_external;
  std::uint64_t ancestor;
  std::uint64_t agent;
  std::uint64_t queue;
  std::uint64_t thread;
  std::uint64_t start;
  std::uint64_t end;
  std::int32_t flags;
  // Later than 1.0; `size` tells.
  std::uint64_t bytes;
};
static_assert(sizeof(ScratchRecord) == 96);

struct KernelSymbol {
  std::uint64_t size;
  std::uint64_t kernel;
  std::uint64_t code_object;
  const char* name;
  std::uint64_t kernel_object;
  std::uint32_t kernarg_segment;
  std::uint32_t kernarg_alignment;
  std::uint32_t group_segment;    // static LDS bytes
  std::uint32_t private_segment;  // scratch bytes
  // Since 0.5; `size` tells.
  std::uint32_t sgprs;
  std::uint32_t arch_vgprs;
  std::uint32_t accum_vgprs;
};

struct HipCall {
  std::uint64_t size;
  // A union of structures, each with a function's arguments in their order, then the returned value.
  std::uint8_t arguments[1];
};

// The returned value of a HIP call is a union whose largest member has five ints after an alignment of eight.
inline constexpr std::size_t kHipReturnBytes = 24;

struct MarkerCall {
  std::uint64_t size;
  union {
    const char* message;
    std::uint64_t range;
    std::uint64_t arguments[2];
  };
  std::uint64_t result;  // of a started range, at the call's end: its number
};

struct StreamCall {  // since 1.0
  std::uint64_t size;
  std::uint64_t stream;
  std::uint64_t value;  // the hipStream_t
};

// rocprofiler_agent_v0_t up to its visibility, which came with 0.6; `size` tells what is there.
struct Agent {
  std::uint64_t size;
  std::uint64_t id;
  AgentType type;
  std::uint32_t cpu_cores;
  std::uint32_t simds;
  std::uint32_t memory_banks;
  std::uint32_t caches;
  std::uint32_t io_links;
  std::uint32_t cpu_core_id_base;
  std::uint32_t simd_id_base;
  std::uint32_t max_waves_per_simd;
  std::uint32_t lds_kib;
  std::uint32_t gds_kib;
  std::uint32_t gws;
  std::uint32_t wave_front_size;
  std::uint32_t xccs;
  std::uint32_t compute_units;
  std::uint32_t arrays;
  std::uint32_t shader_banks;
  std::uint32_t simd_arrays_per_engine;
  std::uint32_t compute_units_per_simd_array;
  std::uint32_t simds_per_compute_unit;
  std::uint32_t scratch_slots;
  std::uint32_t gfx_target_version;  // 90402 is gfx942
  std::uint16_t vendor;
  std::uint16_t device;
  std::uint32_t location;  // bus << 8 | device << 3 | function
  std::uint32_t domain;
  std::uint32_t render_minor;
  std::uint32_t sdma_engines;
  std::uint32_t sdma_xgmi_engines;
  std::uint32_t sdma_queues;
  std::uint32_t compute_queues;
  std::uint32_t cpu_clock_mhz;
  std::uint32_t gpu_clock_mhz;
  std::uint32_t sdma_firmware;
  std::uint32_t firmware;
  std::uint32_t capability;
  std::uint32_t compute_units_per_engine;
  std::uint32_t max_waves_per_compute_unit;
  std::uint32_t family;
  std::uint32_t workgroup_max;
  std::uint32_t grid_max;
  std::uint64_t local_memory;
  std::uint64_t hive;
  std::uint64_t gpu;
  Dim3 workgroup_max_dim;
  Dim3 grid_max_dim;
  const void* memory_bank_list;
  const void* cache_list;
  const void* io_link_list;
  const char* name;
  const char* vendor_name;
  const char* product_name;
  const char* model_name;
  std::uint32_t node;
  std::int32_t logical_node;
  std::int32_t logical_gpu;  // among those of its type
  std::uint32_t visibility;  // bit 0: HSA, bit 1: HIP
  std::uint64_t uuid;        // its first 8 bytes
};
inline constexpr std::uint32_t kVisibleToHip = 2;
inline constexpr std::int32_t kAgentVersion = 1;

struct MemoryBank {
  std::int32_t heap;  // 1, 2: the device's own memory
  std::uint32_t flags;
  std::uint32_t width;
  std::uint32_t clock_mhz;
  std::uint64_t bytes;
};
inline constexpr std::int32_t kPublicMemory = 1;
inline constexpr std::int32_t kPrivateMemory = 2;

struct IoLink {
  std::int32_t type;
  std::uint32_t version_major;
  std::uint32_t version_minor;
  std::uint32_t from_node;
  std::uint32_t to_node;
  std::uint32_t weight;
  std::uint32_t min_latency_ns;
  std::uint32_t max_latency_ns;
  std::uint32_t min_mb_per_s;
  std::uint32_t max_mb_per_s;
  std::uint32_t transfer_bytes;
  std::uint32_t flags;
};
inline constexpr std::int32_t kLinkPcie = 2;
inline constexpr std::int32_t kLinkXgmi = 11;

// Since 1.0 it begins with its size; before, it had none, and no name either until the tool gave one.
struct ClientId {
  std::size_t size;
  const char* name;
  std::uint32_t handle;
};
struct OldClientId {
  const char* name;
  std::uint32_t handle;
};
using ClientFinalize = void (*)(ClientId);
struct ToolConfiguration {
  std::size_t size;
  int (*initialize)(ClientFinalize, void*);
  void (*finalize)(void*);
  void* data;
};

using Configure = ToolConfiguration* (*)(std::uint32_t version, const char* description, std::uint32_t priority,
                                         ClientId* client);
using ApiCallback = void (*)(CallbackRecord, UserData*, void*);
using BufferCallback = void (*)(ContextId, BufferId, RecordHeader**, std::size_t, void*, std::uint64_t dropped);
using CorrelationRequest = int (*)(std::uint64_t thread, ContextId, std::int32_t kind, std::int32_t operation,
                                   std::uint64_t internal, UserData* external, void*);
using AgentsCallback = Status (*)(std::int32_t version, const void** agents, std::size_t count, void*);
using KindCallback = int (*)(std::int32_t kind, void*);
using OperationCallback = int (*)(std::int32_t kind, std::int32_t operation, void*);

}  // namespace leadline::amd::sdk
