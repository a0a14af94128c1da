// The Compute Sanitizer's binary interface, as far as Leadline uses it, from 12.9 to 13.5 at once.
//
// Own declarations, so that a build needs neither CUDA nor a network. Only fields are named that stand at one offset in
// all of these versions (13.5 has put fields into the middle of the records of contexts and streams, so those are not
// used beyond their first). tests/nvidia/test_sanitizer_abi.py compiles these against the vendor's headers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace leadline::sanitizer::abi {

using Result = std::int32_t;
inline constexpr Result kSuccess = 0;
inline constexpr Result kInvalidParameter = 1;
inline constexpr Result kInvalidContext = 3;
inline constexpr Result kOutOfMemory = 7;
inline constexpr Result kMaxLimitReached = 10;  // of sanitizerSubscribe: there is a subscriber already
inline constexpr Result kNotInitialized = 13;
inline constexpr Result kNotSupported = 14;

using Context = struct ContextTag*;
using Module = struct ModuleTag*;
using Function = struct FunctionTag*;
using Stream = struct StreamTag*;
using Subscriber = struct SubscriberTag*;
using StreamHandle = struct StreamHandleTag*;
using LaunchHandle = struct LaunchHandleTag*;

enum class Domain : std::int32_t { kResource = 3, kSynchronize = 4, kLaunch = 5, kGraphs = 10 };

enum class Resource : std::uint32_t {
  kContextCreated = 3,
  kContextDestroyStarting = 4,
  kModuleLoaded = 9,
  kModuleUnloadStarting = 10,
  kMemoryAlloc = 11,
  kMemoryFree = 12,
  kMemoryAllocAsync = 15,
  kMemoryFreeAsync = 16,
  kMemoryFreeAsyncDone = 17,
  kFunctionsLazyLoaded = 24,
  kFunctionsLazyPatched = 25,
};
enum class Launch : std::uint32_t { kBegin = 1, kAfterSyscallSetup = 2, kEnd = 3 };
enum class Graphs : std::uint32_t { kNodeLaunchBegin = 4, kNodeLaunchEnd = 5, kLaunchBegin = 6, kLaunchEnd = 7 };

inline constexpr std::uint32_t kGraphNodeKernel = 0;

// Where a patch can stand (the vendor's names of the instructions, in our words).
enum class Point : std::int32_t {
  kBlockEnter = 1,
  kBlockExit = 2,
  kGlobal = 3,
  kShared = 4,
  kLocal = 5,
  kBarrier = 6,
  kMemcpyAsync = 14,
  kMatrix = 19,
  kClusterBarrierArrive = 21,
  kBulkGlobalToShared = 30,
  kBulkSharedToGlobal = 35,
  kBulkReduceToGlobal = 37,
  kTmaLoad = 43,   // from 13.3
  kTmaStore = 44,  // from 13.3
};

struct ModuleData {
  Context context;
  Module module;
  std::size_t image_bytes;
  const char* image;
};

struct FunctionsData {
  Context context;
  Module module;
  const Function* functions;
  std::uint32_t count;
};

inline constexpr std::uint32_t kMemoryOfModule = 0x1;
inline constexpr std::uint32_t kMemoryHostPinned = 0x8;

struct MemoryData {
  std::uint64_t address;
  std::uint64_t size;
  Context context;  // may be null
  std::int32_t device;
  Stream stream;
  StreamHandle stream_handle;
  void* pool;
  std::uint32_t flags;
};

// 13.5 appends to it.
struct LaunchData {
  Context context;
  Stream stream;
  StreamHandle stream_handle;
  Module module;
  Function function;
  const char* function_name;
  std::uint32_t grid[3];
  std::uint32_t block[3];
  std::uint32_t cluster[3];
  std::uint64_t grid_id;
  LaunchHandle launch;
  std::int32_t device;
  Context api_context;  // of nodes of graphs, and so are the next two
  Stream api_stream;
  StreamHandle api_stream_handle;
};

struct GraphNodeData {
  void* graph_exec;
  std::uint32_t launch_id;
  void* node;
  std::uint32_t node_type;
  alignas(8) LaunchData launch;  // where the node is a kernel
  std::uint64_t appended;        // by 13.5
  std::uint32_t is_upload;       // nothing runs
};

using Callback = void (*)(void* user, Domain domain, std::uint32_t id, const void* data);

// The functions we call; what their names say in the vendor's headers.
struct Functions {
  Result (*subscribe)(Subscriber*, Callback, void*);
  Result (*unsubscribe)(Subscriber);
  Result (*enable_domain)(std::uint32_t, Subscriber, Domain);
  Result (*get_result_string)(Result, const char**);
  Result (*add_patches)(const void*, Context);
  Result (*patch_instructions)(Point, Module, const char*);
  Result (*patch_module)(Module);
  Result (*unpatch_module)(Module);
  Result (*set_launch_callback_data)(LaunchHandle, Function, StreamHandle, const void*);
  Result (*get_function_pc_and_size)(Module, const char*, std::uint64_t*, std::uint64_t*);
  Result (*alloc)(Context, void**, std::size_t);
  Result (*alloc_host)(Context, void**, std::size_t);
  Result (*free)(Context, void*);
  Result (*free_host)(Context, void*);
  Result (*copy_to_device)(void*, void*, std::size_t, StreamHandle);
  Result (*memset)(void*, int, std::size_t, StreamHandle);
};

}  // namespace leadline::sanitizer::abi
