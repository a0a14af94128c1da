#include "providers/amd/hip_calls.h"

#include <array>
#include <span>

namespace leadline::amd {
namespace {

using gpu::ArgumentLayout;

enum class Match : std::uint8_t { kExact, kPrefix };

struct Rule {
  std::string_view name;
  Match match;
  leadline_gpu_kind kind;
  ArgumentLayout arguments;
  Step step = Step::kNone;
};

constexpr std::int8_t kNone = ArgumentLayout::kNone;
constexpr ArgumentLayout stream_at(std::int8_t stream) { return {.stream = stream}; }
constexpr ArgumentLayout copy(std::int8_t bytes, std::int8_t stream = kNone, std::int8_t rows = kNone,
                              std::int8_t source = kNone) {
  const std::int8_t destination = source == kNone ? kNone : std::int8_t{0};
  return {.stream = stream, .bytes = bytes, .rows = rows, .source = source, .destination = destination};
}
constexpr ArgumentLayout taken(std::int8_t bytes, std::int8_t stream = kNone, std::int8_t rows = kNone) {
  return {.stream = stream, .bytes = bytes, .rows = rows, .address_out = 0};
}
constexpr ArgumentLayout given_back(std::int8_t stream = kNone) { return {.stream = stream, .address = 0}; }
constexpr ArgumentLayout event(std::int8_t event, std::int8_t stream = kNone) {
  return {.stream = stream, .event = event};
}

// First match wins, so longer names stand before the shorter ones they begin with. Offsets are those of the structures
// in rocprofiler-sdk/hip/api_args.h, which hold a function's arguments in their order (64-bit).
constexpr auto kRules = std::to_array<Rule>({
    {"hipLaunchCooperativeKernelMultiDevice", Match::kExact, LEADLINE_GPU_LAUNCH, {}},
    {"hipLaunchCooperativeKernel", Match::kExact, LEADLINE_GPU_LAUNCH, stream_at(48)},
    {"hipLaunchKernelExC", Match::kExact, LEADLINE_GPU_LAUNCH, {}},
    {"hipLaunchKernel", Match::kExact, LEADLINE_GPU_LAUNCH, stream_at(48)},
    {"hipLaunchHostFunc", Match::kPrefix, LEADLINE_GPU_OTHER, {}},
    {"hipLaunchByPtr", Match::kExact, LEADLINE_GPU_LAUNCH, {}},
    {"hipDrvLaunchKernelEx", Match::kPrefix, LEADLINE_GPU_LAUNCH, {}},
    {"hipExtLaunchKernel", Match::kExact, LEADLINE_GPU_LAUNCH, stream_at(48)},
    {"hipExtLaunchMultiKernelMultiDevice", Match::kExact, LEADLINE_GPU_LAUNCH, {}},
    {"hipExtModuleLaunchKernel", Match::kExact, LEADLINE_GPU_LAUNCH, stream_at(40)},
    {"hipHccModuleLaunchKernel", Match::kExact, LEADLINE_GPU_LAUNCH, stream_at(40)},
    {"hipModuleLaunchCooperativeKernelMultiDevice", Match::kExact, LEADLINE_GPU_LAUNCH, {}},
    {"hipModuleLaunchCooperativeKernel", Match::kExact, LEADLINE_GPU_LAUNCH, stream_at(40)},
    {"hipModuleLaunchKernel", Match::kExact, LEADLINE_GPU_LAUNCH, stream_at(40)},
    {"hipMemcpyPeerAsync", Match::kExact, LEADLINE_GPU_COPY, copy(32, 40)},
    {"hipMemcpyPeer", Match::kExact, LEADLINE_GPU_COPY, copy(32)},
    {"hipMemcpyWithStream", Match::kExact, LEADLINE_GPU_COPY, copy(16, 32, kNone, 8)},
    {"hipMemcpyAsync", Match::kExact, LEADLINE_GPU_COPY, copy(16, 32, kNone, 8)},
    {"hipMemcpyHtoDAsync", Match::kExact, LEADLINE_GPU_COPY, copy(16, 24, kNone, 8)},
    {"hipMemcpyDtoHAsync", Match::kExact, LEADLINE_GPU_COPY, copy(16, 24, kNone, 8)},
    {"hipMemcpyDtoDAsync", Match::kExact, LEADLINE_GPU_COPY, copy(16, 24)},
    {"hipMemcpyHtoD", Match::kExact, LEADLINE_GPU_COPY, copy(16, kNone, kNone, 8)},
    {"hipMemcpyDtoH", Match::kExact, LEADLINE_GPU_COPY, copy(16, kNone, kNone, 8)},
    {"hipMemcpyDtoD", Match::kExact, LEADLINE_GPU_COPY, copy(16)},
    {"hipMemcpy2DAsync", Match::kExact, LEADLINE_GPU_COPY, copy(32, 56, 40, 16)},
    {"hipMemcpy2D", Match::kExact, LEADLINE_GPU_COPY, copy(32, kNone, 40, 16)},
    {"hipMemcpy", Match::kExact, LEADLINE_GPU_COPY, copy(16, kNone, kNone, 8)},
    {"hipMemcpy", Match::kPrefix, LEADLINE_GPU_COPY, {}},
    {"hipDrvMemcpy", Match::kPrefix, LEADLINE_GPU_COPY, {}},
    {"hipMemPrefetch", Match::kPrefix, LEADLINE_GPU_COPY, {}},
    {"hipMemsetAsync", Match::kExact, LEADLINE_GPU_SET, copy(16, 24)},
    {"hipMemsetD8Async", Match::kExact, LEADLINE_GPU_SET, copy(16, 24)},
    {"hipMemsetD8", Match::kExact, LEADLINE_GPU_SET, copy(16)},
    {"hipMemset", Match::kExact, LEADLINE_GPU_SET, copy(16)},
    {"hipMemset", Match::kPrefix, LEADLINE_GPU_SET, {}},
    {"hipStreamSynchronize", Match::kExact, LEADLINE_GPU_SYNC, stream_at(0)},
    {"hipEventSynchronize", Match::kExact, LEADLINE_GPU_SYNC, event(0)},
    {"hipDeviceSynchronize", Match::kExact, LEADLINE_GPU_SYNC, {}},
    {"hipCtxSynchronize", Match::kExact, LEADLINE_GPU_SYNC, {}},
    {"hipStreamWaitEvent", Match::kExact, LEADLINE_GPU_STREAM_WAIT, event(8, 0)},
    {"hipEventRecord", Match::kPrefix, LEADLINE_GPU_EVENT_RECORD, event(0, 8)},
    {"hipMallocFromPoolAsync", Match::kExact, LEADLINE_GPU_ALLOC, taken(8, 24)},
    {"hipMallocAsync", Match::kExact, LEADLINE_GPU_ALLOC, taken(8, 16)},
    {"hipMallocManaged", Match::kExact, LEADLINE_GPU_ALLOC, taken(8)},
    {"hipMallocPitch", Match::kExact, LEADLINE_GPU_ALLOC, taken(16, kNone, 24)},
    {"hipMemAllocPitch", Match::kExact, LEADLINE_GPU_ALLOC, taken(16, kNone, 24)},
    {"hipExtMallocWithFlags", Match::kExact, LEADLINE_GPU_ALLOC, taken(8)},
    {"hipMemCreate", Match::kExact, LEADLINE_GPU_ALLOC, taken(8)},
    {"hipMallocHost", Match::kExact, LEADLINE_GPU_OTHER, taken(8), Step::kHostTaken},
    {"hipHostMalloc", Match::kExact, LEADLINE_GPU_OTHER, taken(8), Step::kHostTaken},
    {"hipHostAlloc", Match::kExact, LEADLINE_GPU_OTHER, taken(8), Step::kHostTaken},
    {"hipExtHostAlloc", Match::kExact, LEADLINE_GPU_OTHER, taken(8), Step::kHostTaken},
    {"hipHostRegister", Match::kExact, LEADLINE_GPU_OTHER, copy(8), Step::kHostLocked},
    {"hipHostUnregister", Match::kExact, LEADLINE_GPU_OTHER, given_back(), Step::kHostGivenBack},
    {"hipHostFree", Match::kExact, LEADLINE_GPU_OTHER, given_back(), Step::kHostGivenBack},
    {"hipFreeHost", Match::kExact, LEADLINE_GPU_OTHER, given_back(), Step::kHostGivenBack},
    {"hipMalloc", Match::kExact, LEADLINE_GPU_ALLOC, taken(8)},
    {"hipMalloc", Match::kPrefix, LEADLINE_GPU_ALLOC, {}},
    {"hipFreeAsync", Match::kExact, LEADLINE_GPU_FREE, given_back(8)},
    {"hipFree", Match::kExact, LEADLINE_GPU_FREE, given_back()},
    {"hipFree", Match::kPrefix, LEADLINE_GPU_FREE, {}},
    {"hipMemRelease", Match::kExact, LEADLINE_GPU_FREE, given_back()},
    {"hipGraphLaunch", Match::kExact, LEADLINE_GPU_GRAPH_LAUNCH, stream_at(8), Step::kLaunch},
    {"hipGraphInstantiate", Match::kPrefix, LEADLINE_GPU_GRAPH_INSTANTIATE, {.graph = 8}, Step::kInstantiate},
    {"hipGraphExecDestroy", Match::kExact, LEADLINE_GPU_OTHER, {}, Step::kDestroyExec},
    {"hipGraphDestroyNode", Match::kExact, LEADLINE_GPU_OTHER, {}},
    {"hipGraphDestroy", Match::kExact, LEADLINE_GPU_OTHER, {}, Step::kDestroy},
    {"hipGraphUpload", Match::kExact, LEADLINE_GPU_OTHER, {}},
    {"hipStreamBeginCaptureToGraph", Match::kExact, LEADLINE_GPU_GRAPH_CREATE, {}, Step::kBeginCapture},
    {"hipStreamBeginCapture", Match::kExact, LEADLINE_GPU_GRAPH_CREATE, {}, Step::kBeginCapture},
    {"hipStreamEndCapture", Match::kExact, LEADLINE_GPU_GRAPH_CREATE, {}, Step::kEndCapture},
    {"hipSetDevice", Match::kExact, LEADLINE_GPU_OTHER, {}, Step::kSetDevice},
    {"hipModuleLoad", Match::kPrefix, LEADLINE_GPU_OTHER, {}},
});

// Of RCCL: what moves data or makes communicators. Of HSA, which HIP calls all the time: what programs may call by
// themselves and takes long; a call inside one of HIP's is not shown.
constexpr auto kLibraryRules = std::to_array<Rule>({
    {"ncclAllToAllv", Match::kExact, LEADLINE_GPU_OTHER, stream_at(64)},
    {"ncclReduceScatter", Match::kExact, LEADLINE_GPU_OTHER, stream_at(40)},
    {"ncclReduce", Match::kExact, LEADLINE_GPU_OTHER, stream_at(48)},
    {"ncclSend", Match::kExact, LEADLINE_GPU_OTHER, stream_at(32)},
    {"ncclRecv", Match::kExact, LEADLINE_GPU_OTHER, stream_at(32)},
    {"ncclAllGather", Match::kExact, LEADLINE_GPU_OTHER, stream_at(40)},
    {"ncclAllReduce", Match::kExact, LEADLINE_GPU_OTHER, stream_at(40)},
    {"ncclAllToAll", Match::kExact, LEADLINE_GPU_OTHER, stream_at(40)},
    {"ncclBroadcast", Match::kExact, LEADLINE_GPU_OTHER, stream_at(40)},
    {"ncclGather", Match::kExact, LEADLINE_GPU_OTHER, stream_at(40)},
    {"ncclScatter", Match::kExact, LEADLINE_GPU_OTHER, stream_at(40)},
    {"ncclGroupEnd", Match::kExact, LEADLINE_GPU_OTHER, {}},
    {"ncclCommInit", Match::kPrefix, LEADLINE_GPU_OTHER, {}},
    {"ncclCommSplit", Match::kExact, LEADLINE_GPU_OTHER, {}},
    {"ncclCommDestroy", Match::kExact, LEADLINE_GPU_OTHER, {}},
    {"ncclCommFinalize", Match::kExact, LEADLINE_GPU_OTHER, {}},
    {"ncclCommRegister", Match::kExact, LEADLINE_GPU_OTHER, {}},
    {"hsa_amd_memory_async_copy", Match::kPrefix, LEADLINE_GPU_COPY, {}},
    {"hsa_memory_copy", Match::kExact, LEADLINE_GPU_COPY, {}},
    {"hsa_amd_memory_pool_allocate", Match::kExact, LEADLINE_GPU_OTHER, {}},
    {"hsa_amd_memory_pool_free", Match::kExact, LEADLINE_GPU_OTHER, {}},
    {"hsa_memory_allocate", Match::kExact, LEADLINE_GPU_OTHER, {}},
    {"hsa_memory_free", Match::kExact, LEADLINE_GPU_OTHER, {}},
    {"hsa_executable_load", Match::kPrefix, LEADLINE_GPU_OTHER, {}},
    {"hsa_queue_create", Match::kExact, LEADLINE_GPU_OTHER, {}},
});

struct TracerRule {
  std::string_view name;
  ArgumentLayout arguments;
};
// Where the structures of roctracer, which hold what a pointer points to behind it, differ from the above.
constexpr auto kTracerRules = std::to_array<TracerRule>({
    {"hipLaunchCooperativeKernel", stream_at(56)},
    {"hipLaunchKernel", stream_at(56)},
    {"hipExtLaunchKernel", stream_at(56)},
    {"hipMallocFromPoolAsync", taken(16, 32)},
    {"hipMallocAsync", taken(16, 24)},
    {"hipMallocManaged", taken(16)},
    {"hipMallocPitch", taken(32, kNone, 40)},
    {"hipMemAllocPitch", taken(32, kNone, 40)},
    {"hipExtMallocWithFlags", taken(16)},
    {"hipMemCreate", taken(16)},
    {"hipMalloc", taken(16)},
    {"hipMallocHost", taken(16)},
    {"hipHostMalloc", taken(16)},
    {"hipHostAlloc", taken(16)},
    {"hipExtHostAlloc", taken(16)},
});

void as_tracer_says(std::string_view name, HipCallKind* call) {
  for (const TracerRule& rule : kTracerRules) {
    if (rule.name == name) call->arguments = rule.arguments;
  }
  if (call->step == Step::kInstantiate) call->arguments.graph = 16;
}

}  // namespace

HipCallKind classify(std::string_view name, Interface interface) {
  HipCallKind call;
  // The same call on the thread's own default stream.
  if (name.ends_with("_spt")) name.remove_suffix(4);
  call.name = name;
  if (name.find("Get") != std::string_view::npos || name.find("Query") != std::string_view::npos) return call;
  const bool is_library = interface == Interface::kRccl || interface == Interface::kHsa;
  for (const Rule& rule : is_library ? std::span<const Rule>(kLibraryRules) : std::span<const Rule>(kRules)) {
    if (rule.match == Match::kExact ? name != rule.name : !name.starts_with(rule.name)) continue;
    call.kind = rule.kind;
    call.arguments = rule.arguments;
    call.step = rule.step;
    call.followed = true;
    break;
  }
  if (interface == Interface::kTracer) as_tracer_says(name, &call);
  return call;
}

void HipCalls::add(std::int32_t operation, std::string_view name, Interface interface) {
  constexpr std::int32_t kMost = 8192;  // ROCm 7 has some 550
  if (operation < 0 || operation >= kMost) return;
  const auto at = static_cast<std::size_t>(operation);
  if (at >= calls_.size()) calls_.resize(at + 1);
  calls_[at] = classify(name, interface);
  if (calls_[at].followed) followed_.push_back(operation);
}

}  // namespace leadline::amd
