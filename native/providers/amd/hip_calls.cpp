#include "providers/amd/hip_calls.h"

#include <array>

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
constexpr ArgumentLayout copy(std::int8_t bytes, std::int8_t stream = kNone, std::int8_t rows = kNone) {
  return {.stream = stream, .bytes = bytes, .rows = rows};
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
    {"hipMemcpyWithStream", Match::kExact, LEADLINE_GPU_COPY, copy(16, 32)},
    {"hipMemcpyAsync", Match::kExact, LEADLINE_GPU_COPY, copy(16, 32)},
    {"hipMemcpyHtoDAsync", Match::kExact, LEADLINE_GPU_COPY, copy(16, 24)},
    {"hipMemcpyDtoHAsync", Match::kExact, LEADLINE_GPU_COPY, copy(16, 24)},
    {"hipMemcpyDtoDAsync", Match::kExact, LEADLINE_GPU_COPY, copy(16, 24)},
    {"hipMemcpyHtoD", Match::kExact, LEADLINE_GPU_COPY, copy(16)},
    {"hipMemcpyDtoH", Match::kExact, LEADLINE_GPU_COPY, copy(16)},
    {"hipMemcpyDtoD", Match::kExact, LEADLINE_GPU_COPY, copy(16)},
    {"hipMemcpy2DAsync", Match::kExact, LEADLINE_GPU_COPY, copy(32, 56, 40)},
    {"hipMemcpy2D", Match::kExact, LEADLINE_GPU_COPY, copy(32, kNone, 40)},
    {"hipMemcpy", Match::kExact, LEADLINE_GPU_COPY, copy(16)},
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
    {"hipMallocHost", Match::kPrefix, LEADLINE_GPU_OTHER, {}},
    {"hipHostMalloc", Match::kPrefix, LEADLINE_GPU_OTHER, {}},
    {"hipHostAlloc", Match::kPrefix, LEADLINE_GPU_OTHER, {}},
    {"hipExtHostAlloc", Match::kPrefix, LEADLINE_GPU_OTHER, {}},
    {"hipHostRegister", Match::kPrefix, LEADLINE_GPU_OTHER, {}},
    {"hipHostFree", Match::kPrefix, LEADLINE_GPU_OTHER, {}},
    {"hipFreeHost", Match::kPrefix, LEADLINE_GPU_OTHER, {}},
    {"hipMalloc", Match::kExact, LEADLINE_GPU_ALLOC, taken(8)},
    {"hipMalloc", Match::kPrefix, LEADLINE_GPU_ALLOC, {}},
    {"hipFreeAsync", Match::kExact, LEADLINE_GPU_FREE, given_back(8)},
    {"hipFree", Match::kExact, LEADLINE_GPU_FREE, given_back()},
    {"hipFree", Match::kPrefix, LEADLINE_GPU_FREE, {}},
    {"hipMemRelease", Match::kExact, LEADLINE_GPU_FREE, given_back()},
    {"hipGraphLaunch", Match::kExact, LEADLINE_GPU_GRAPH_LAUNCH, stream_at(8), Step::kLaunch},
    {"hipGraphInstantiate", Match::kPrefix, LEADLINE_GPU_GRAPH_INSTANTIATE, {}, Step::kInstantiate},
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
});

void as_tracer_says(std::string_view name, HipCallKind* call) {
  for (const TracerRule& rule : kTracerRules) {
    if (rule.name == name) call->arguments = rule.arguments;
  }
  if (call->step != Step::kSetDevice && call->step != Step::kBeginCapture && call->step != Step::kEndCapture)
    call->step = Step::kNone;
}

}  // namespace

HipCallKind classify(std::string_view name, Interface interface) {
  HipCallKind call;
  // The same call on the thread's own default stream.
  if (name.ends_with("_spt")) name.remove_suffix(4);
  call.name = name;
  if (name.find("Get") != std::string_view::npos || name.find("Query") != std::string_view::npos) return call;
  for (const Rule& rule : kRules) {
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
