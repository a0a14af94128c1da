// CUPTI's binary interface, as far as Leadline uses it, for majors 12 and 13 at once.
//
// Own declarations, so that a build needs neither CUDA nor a network. CUPTI only ever appends to its records: every
// field below stands at the same offset from 12.1 to 13.5, so one prefix serves all versions and only the presence of
// late fields depends on the version. tests/nvidia/test_abi.py compiles these against the vendor's headers of both
// majors.
#pragma once

#include <cstddef>
#include <cstdint>

namespace leadline::nvidia::cupti {

using Result = std::int32_t;
inline constexpr Result kSuccess = 0;
inline constexpr Result kInvalidParameter = 1;
inline constexpr Result kMaxLimitReached = 12;
inline constexpr Result kNotCompatible = 14;
inline constexpr Result kNotInitialized = 15;
inline constexpr Result kInvalidKind = 21;
inline constexpr Result kNotSupported = 27;
inline constexpr Result kVirtualizedNotSupported = 33;
inline constexpr Result kInsufficientPrivileges = 35;
inline constexpr Result kMultipleSubscribersNotSupported = 39;
inline constexpr Result kVirtualizedInsufficientPrivileges = 40;
inline constexpr Result kUnknown = 999;

// What cuptiGetVersion() answers: a small counter up to CUDA 12, major * 10000 + minor * 100 + patch from 13 on.
inline constexpr std::uint32_t kVersion12_0 = 18;
inline constexpr std::uint32_t kVersion12_4 = 22;  // overhead records carry a correlation id
inline constexpr std::uint32_t kVersion12_6 = 24;  // finalising after CUDA graphs is safe
inline constexpr std::uint32_t kVersion12_8 = 26;  // synchronisation records name the awaited event record
inline constexpr std::uint32_t kVersion12_9 = 27;  // a request for a buffer may be answered with none
inline constexpr std::uint32_t kVersion13_0 = 130000;
inline constexpr std::uint32_t kVersion13_2 = 130200;  // subscriber parameters ask for shared subscription
inline constexpr std::uint32_t kVersion13_3 = 130300;  // all activity calls exist per subscriber
inline constexpr std::uint32_t kVersion14 = 140000;    // not known to us

enum class Domain : std::int32_t { kDriver = 1, kRuntime = 2, kResource = 3, kSynchronize = 4, kNvtx = 5, kState = 6 };
enum class Site : std::int32_t { kEnter = 0, kExit = 1 };

enum class Resource : std::uint32_t {
  kContextCreated = 1,
  kContextDestroyStarting = 2,
  kModuleLoaded = 6,
  kModuleUnloadStarting = 7,
  kGraphDestroyStarting = 10,
  kGraphNodeCreated = 13,
  kGraphNodeDestroyStarting = 14,
  kGraphExecCreated = 18,
  kGraphExecDestroyStarting = 19,
  kGraphNodeCloned = 20,
};

enum class Kind : std::uint32_t {
  kMemcpy = 1,
  kMemset = 2,
  kKernel = 3,
  kConcurrentKernel = 10,
  kOverhead = 17,
  kMemcpyPeer = 22,
  kSynchronization = 38,
  kGraphTrace = 51,
};

inline constexpr std::uint32_t kFlushForced = 1;

enum class CopyKind : std::uint8_t { kUnknown, kHtoD, kDtoH, kHtoA, kAtoH, kAtoA, kAtoD, kDtoA, kDtoD, kHtoH, kPtoP };
enum class MemoryKind : std::uint8_t {
  kUnknown,
  kPageable,
  kPinned,
  kDevice,
  kArray,
  kManaged,
  kDeviceStatic,
  kManagedStatic
};
enum class SyncType : std::uint32_t { kUnknown, kEvent, kStreamWaitEvent, kStream, kContext };
enum class OverheadKind : std::uint32_t {
  kUnknown = 0,
  kDriverCompiler = 1,
  kBufferFlush = 1u << 16,
  kInstrumentation = 2u << 16,
  kResource = 3u << 16,
  kModuleLoading = 4u << 16,
  kLazyFunctionLoading = 5u << 16,
  kCommandBufferFull = 6u << 16,
  kBufferRequest = 7u << 16,
};

// Of the whole library, by cuptiActivitySetAttribute.
enum class Attribute : std::int32_t { kZeroedBuffers = 5 };

using Subscriber = struct SubscriberTag*;
using Timestamp = std::uint64_t (*)();
using CallbackFunction = void (*)(void* user, Domain domain, std::uint32_t cbid, const void* data);
using BufferRequested = void (*)(std::uint8_t** buffer, std::size_t* size, std::size_t* max_records);
using BufferCompleted = void (*)(void* context, std::uint32_t stream, std::uint8_t* buffer, std::size_t size,
                                 std::size_t valid);
using BufferRequestedV2 = void (*)(std::uint8_t** buffer, std::size_t* size, std::size_t* max_records, void* info);
using BufferCompletedV2 = void (*)(std::uint8_t* buffer, std::size_t size, std::size_t valid, void* info);

struct CallbackData {
  Site site;
  const char* function_name;
  const void* params;
  void* return_value;
  const char* symbol_name;
  void* context;
  std::uint32_t context_uid;
  std::uint64_t* correlation_data;
  std::uint32_t correlation_id;
};

struct ResourceData {
  void* context;
  void* stream;
  void* descriptor;
};

struct ModuleData {
  std::uint32_t module_id;
  std::size_t image_bytes;
  const char* image;
};

inline constexpr std::uint32_t kNodeOfGraph = 4;  // a graph as a node of another, in the driver's enumeration

struct GraphData {
  void* graph;
  void* original_graph;
  void* node;
  void* original_node;
  std::uint32_t node_type;
  void* dependency;
  void* graph_exec;
};

struct SubscriberParams {
  std::size_t struct_size;
  const char* name;
  char* holder;
  std::size_t holder_size;
  std::uint8_t allow_multiple;  // from 13.2 on
  std::uint8_t padding[7];
};
inline constexpr std::size_t kSubscriberParamsSize13_0 = 32;
inline constexpr std::size_t kHolderNameSize = 64;

struct Record {
  Kind kind;
};

struct KernelRecord {
  Kind kind;
  std::uint8_t cache_config;
  std::uint8_t shared_memory_config;
  std::uint16_t registers_per_thread;
  std::uint32_t partitioned_requested;
  std::uint32_t partitioned_executed;
  std::uint64_t start;
  std::uint64_t end;
  std::uint64_t completed;
  std::uint32_t device_id;
  std::uint32_t context_id;
  std::uint32_t stream_id;
  std::int32_t grid[3];
  std::int32_t block[3];
  std::int32_t static_shared;
  std::int32_t dynamic_shared;
  std::uint32_t local_per_thread;
  std::uint32_t local_total;
  std::uint32_t correlation_id;
  std::int64_t grid_id;
  const char* name;
  void* reserved0;
  std::uint64_t queued;
  std::uint64_t submitted;
  std::uint8_t launch_type;
  std::uint8_t carveout_is_requested;
  std::uint8_t carveout_requested;
  std::uint8_t padding;
  std::uint32_t shared_executed;
  std::uint64_t graph_node_id;
  std::uint32_t shared_limit_config;
  std::uint32_t graph_id;
};

struct MemcpyRecord {
  Kind kind;
  std::uint8_t copy_kind;
  std::uint8_t source_kind;
  std::uint8_t destination_kind;
  std::uint8_t flags;
  std::uint64_t bytes;
  std::uint64_t start;
  std::uint64_t end;
  std::uint32_t device_id;
  std::uint32_t context_id;
  std::uint32_t stream_id;
  std::uint32_t correlation_id;
  std::uint32_t runtime_correlation_id;
  std::uint32_t padding;
  void* reserved0;
  std::uint64_t graph_node_id;
  std::uint32_t graph_id;
};

struct MemcpyPeerRecord {
  Kind kind;
  std::uint8_t copy_kind;
  std::uint8_t source_kind;
  std::uint8_t destination_kind;
  std::uint8_t flags;
  std::uint64_t bytes;
  std::uint64_t start;
  std::uint64_t end;
  std::uint32_t device_id;
  std::uint32_t context_id;
  std::uint32_t stream_id;
  std::uint32_t source_device;
  std::uint32_t source_context;
  std::uint32_t destination_device;
  std::uint32_t destination_context;
  std::uint32_t correlation_id;
  void* reserved0;
  std::uint64_t graph_node_id;
  std::uint32_t graph_id;
};

struct MemsetRecord {
  Kind kind;
  std::uint32_t value;
  std::uint64_t bytes;
  std::uint64_t start;
  std::uint64_t end;
  std::uint32_t device_id;
  std::uint32_t context_id;
  std::uint32_t stream_id;
  std::uint32_t correlation_id;
  std::uint16_t flags;
  std::uint16_t memory_kind;
  std::uint32_t padding;
  void* reserved0;
  std::uint64_t graph_node_id;
  std::uint32_t graph_id;
};

struct SynchronizationRecord {
  Kind kind;
  SyncType type;
  std::uint64_t start;
  std::uint64_t end;
  std::uint32_t correlation_id;
  std::uint32_t context_id;
  std::uint32_t stream_id;
  std::uint32_t event_id;
};

struct OverheadRecord {
  Kind kind;
  OverheadKind overhead;
  std::uint32_t object_kind;
  std::uint32_t object_id[3];
  std::uint64_t start;
  std::uint64_t end;
  std::uint32_t correlation_id;  // from 12.4 on
};

struct GraphTraceRecord {
  Kind kind;
  std::uint32_t correlation_id;
  std::uint64_t start;
  std::uint64_t end;
  std::uint32_t device_id;
  std::uint32_t graph_id;
  std::uint32_t context_id;
  std::uint32_t stream_id;
};

}  // namespace leadline::nvidia::cupti
