#include "providers/nvidia/api_names.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace leadline::nvidia {
namespace {

enum class Match : std::uint8_t { kExact, kPrefix };

struct Rule {
  std::string_view name;
  Match match;
  leadline_gpu_kind kind;
  bool makes_work;
  ArgumentLayout arguments;
};

constexpr std::int8_t kNone = ArgumentLayout::kNone;
constexpr ArgumentLayout stream_at(std::int8_t stream) { return {.stream = stream}; }
constexpr ArgumentLayout copy(std::int8_t bytes, std::int8_t stream = kNone) {
  return {.stream = stream, .bytes = bytes};
}
constexpr ArgumentLayout taken(std::int8_t bytes, std::int8_t stream = kNone, std::int8_t rows = kNone) {
  return {.stream = stream, .bytes = bytes, .rows = rows, .address_out = 0};
}
constexpr ArgumentLayout given_back(std::int8_t stream = kNone) { return {.stream = stream, .address = 0}; }
constexpr ArgumentLayout event(std::int8_t event, std::int8_t stream = kNone) {
  return {.stream = stream, .event = event};
}

// First match wins, so longer names stand before the shorter ones they begin with. Offsets are those of the parameter
// structures in the vendor's generated_cuda_meta.h and generated_cuda_runtime_api_meta.h (64-bit).
constexpr auto kRules = std::to_array<Rule>({
    // runtime
    {"cudaLaunchKernelEx", Match::kPrefix, LEADLINE_GPU_LAUNCH, true, {}},
    {"cudaLaunchKernel", Match::kPrefix, LEADLINE_GPU_LAUNCH, true, stream_at(48)},
    {"cudaLaunchCooperativeKernelMultiDevice", Match::kExact, LEADLINE_GPU_LAUNCH, true, {}},
    {"cudaLaunchCooperativeKernel", Match::kPrefix, LEADLINE_GPU_LAUNCH, true, stream_at(48)},
    {"cudaLaunchHostFunc", Match::kPrefix, LEADLINE_GPU_OTHER, false, {}},
    {"cudaLaunch", Match::kExact, LEADLINE_GPU_LAUNCH, true, {}},
    {"cudaMemcpyPeerAsync", Match::kExact, LEADLINE_GPU_COPY, true, copy(32, 40)},
    {"cudaMemcpyPeer", Match::kExact, LEADLINE_GPU_COPY, true, copy(32)},
    {"cudaMemcpyAsync", Match::kExact, LEADLINE_GPU_COPY, true, copy(16, 32)},
    {"cudaMemcpy", Match::kExact, LEADLINE_GPU_COPY, true, copy(16)},
    {"cudaMemcpy", Match::kPrefix, LEADLINE_GPU_COPY, true, {}},
    {"cudaMemPrefetch", Match::kPrefix, LEADLINE_GPU_COPY, false, {}},
    {"cudaMemsetAsync", Match::kExact, LEADLINE_GPU_SET, true, copy(16, 24)},
    {"cudaMemset", Match::kExact, LEADLINE_GPU_SET, true, copy(16)},
    {"cudaMemset", Match::kPrefix, LEADLINE_GPU_SET, true, {}},
    {"cudaStreamSynchronize", Match::kPrefix, LEADLINE_GPU_SYNC, false, stream_at(0)},
    {"cudaEventSynchronize", Match::kPrefix, LEADLINE_GPU_SYNC, false, event(0)},
    {"cudaDeviceSynchronize", Match::kPrefix, LEADLINE_GPU_SYNC, false, {}},
    {"cudaThreadSynchronize", Match::kPrefix, LEADLINE_GPU_SYNC, false, {}},
    {"cudaStreamWaitEvent", Match::kPrefix, LEADLINE_GPU_STREAM_WAIT, false, event(8, 0)},
    {"cudaEventRecord", Match::kPrefix, LEADLINE_GPU_EVENT_RECORD, false, event(0, 8)},
    {"cudaMallocFromPoolAsync", Match::kPrefix, LEADLINE_GPU_ALLOC, false, taken(8, 24)},
    {"cudaMallocAsync", Match::kPrefix, LEADLINE_GPU_ALLOC, false, taken(8, 16)},
    {"cudaMallocManaged", Match::kExact, LEADLINE_GPU_ALLOC, false, taken(8)},
    {"cudaMallocPitch", Match::kExact, LEADLINE_GPU_ALLOC, false, taken(16, kNone, 24)},
    {"cudaMallocHost", Match::kPrefix, LEADLINE_GPU_OTHER, false, {}},
    {"cudaHostAlloc", Match::kPrefix, LEADLINE_GPU_OTHER, false, {}},
    {"cudaFreeHost", Match::kPrefix, LEADLINE_GPU_OTHER, false, {}},
    {"cudaMalloc", Match::kExact, LEADLINE_GPU_ALLOC, false, taken(8)},
    {"cudaMalloc", Match::kPrefix, LEADLINE_GPU_ALLOC, false, {}},
    {"cudaFreeAsync", Match::kPrefix, LEADLINE_GPU_FREE, false, given_back(8)},
    {"cudaFree", Match::kExact, LEADLINE_GPU_FREE, false, given_back()},
    {"cudaFree", Match::kPrefix, LEADLINE_GPU_FREE, false, {}},
    {"cudaGraphLaunch", Match::kPrefix, LEADLINE_GPU_GRAPH_LAUNCH, true, stream_at(8)},
    {"cudaGraphInstantiate", Match::kPrefix, LEADLINE_GPU_GRAPH_INSTANTIATE, false, {}},
    {"cudaStreamBeginCapture", Match::kPrefix, LEADLINE_GPU_GRAPH_CREATE, false, {}},
    {"cudaStreamEndCapture", Match::kPrefix, LEADLINE_GPU_GRAPH_CREATE, false, {}},
    {"cudaGraphCreate", Match::kPrefix, LEADLINE_GPU_GRAPH_CREATE, false, {}},
    {"cudaGraphUpload", Match::kPrefix, LEADLINE_GPU_OTHER, false, {}},
    {"cudaLibraryLoad", Match::kPrefix, LEADLINE_GPU_OTHER, false, {}},
    // driver
    {"cuLaunchKernelEx", Match::kPrefix, LEADLINE_GPU_LAUNCH, true, {}},
    {"cuLaunchKernel", Match::kPrefix, LEADLINE_GPU_LAUNCH, true, stream_at(40)},
    {"cuLaunchCooperativeKernelMultiDevice", Match::kPrefix, LEADLINE_GPU_LAUNCH, true, {}},
    {"cuLaunchCooperativeKernel", Match::kPrefix, LEADLINE_GPU_LAUNCH, true, stream_at(40)},
    {"cuLaunchHostFunc", Match::kPrefix, LEADLINE_GPU_OTHER, false, {}},
    {"cuLaunch", Match::kPrefix, LEADLINE_GPU_LAUNCH, true, {}},
    {"cuMemcpyHtoDAsync_v2", Match::kExact, LEADLINE_GPU_COPY, true, copy(16, 24)},
    {"cuMemcpyDtoHAsync_v2", Match::kExact, LEADLINE_GPU_COPY, true, copy(16, 24)},
    {"cuMemcpyDtoDAsync_v2", Match::kExact, LEADLINE_GPU_COPY, true, copy(16, 24)},
    {"cuMemcpyAsync", Match::kExact, LEADLINE_GPU_COPY, true, copy(16, 24)},
    {"cuMemcpyPeerAsync", Match::kExact, LEADLINE_GPU_COPY, true, copy(32, 40)},
    {"cuMemcpyHtoD_v2", Match::kExact, LEADLINE_GPU_COPY, true, copy(16)},
    {"cuMemcpyDtoH_v2", Match::kExact, LEADLINE_GPU_COPY, true, copy(16)},
    {"cuMemcpyDtoD_v2", Match::kExact, LEADLINE_GPU_COPY, true, copy(16)},
    {"cuMemcpy", Match::kExact, LEADLINE_GPU_COPY, true, copy(16)},
    {"cuMemcpy", Match::kPrefix, LEADLINE_GPU_COPY, true, {}},
    {"cuMemPrefetch", Match::kPrefix, LEADLINE_GPU_COPY, false, {}},
    {"cuMemsetD8Async", Match::kExact, LEADLINE_GPU_SET, true, copy(16, 24)},
    {"cuMemset", Match::kPrefix, LEADLINE_GPU_SET, true, {}},
    {"cuStreamSynchronize", Match::kPrefix, LEADLINE_GPU_SYNC, false, stream_at(0)},
    {"cuEventSynchronize", Match::kPrefix, LEADLINE_GPU_SYNC, false, event(0)},
    {"cuCtxSynchronize", Match::kPrefix, LEADLINE_GPU_SYNC, false, {}},
    {"cuStreamWaitEvent", Match::kPrefix, LEADLINE_GPU_STREAM_WAIT, false, event(8, 0)},
    {"cuEventRecord", Match::kPrefix, LEADLINE_GPU_EVENT_RECORD, false, event(0, 8)},
    {"cuMemAllocFromPoolAsync", Match::kPrefix, LEADLINE_GPU_ALLOC, false, taken(8, 24)},
    {"cuMemAllocAsync", Match::kPrefix, LEADLINE_GPU_ALLOC, false, taken(8, 16)},
    {"cuMemAllocManaged", Match::kExact, LEADLINE_GPU_ALLOC, false, taken(8)},
    {"cuMemAllocPitch_v2", Match::kExact, LEADLINE_GPU_ALLOC, false, taken(16, kNone, 24)},
    {"cuMemAllocHost", Match::kPrefix, LEADLINE_GPU_OTHER, false, {}},
    {"cuMemHostAlloc", Match::kPrefix, LEADLINE_GPU_OTHER, false, {}},
    {"cuMemFreeHost", Match::kPrefix, LEADLINE_GPU_OTHER, false, {}},
    {"cuMemAlloc_v2", Match::kExact, LEADLINE_GPU_ALLOC, false, taken(8)},
    {"cuMemAlloc", Match::kPrefix, LEADLINE_GPU_ALLOC, false, {}},
    {"cuMemCreate", Match::kExact, LEADLINE_GPU_ALLOC, false, taken(8)},
    {"cuMemRelease", Match::kExact, LEADLINE_GPU_FREE, false, given_back()},
    {"cuMemFreeAsync", Match::kPrefix, LEADLINE_GPU_FREE, false, given_back(8)},
    {"cuMemFree_v2", Match::kExact, LEADLINE_GPU_FREE, false, given_back()},
    {"cuMemFree", Match::kPrefix, LEADLINE_GPU_FREE, false, {}},
    {"cuGraphLaunch", Match::kPrefix, LEADLINE_GPU_GRAPH_LAUNCH, true, stream_at(8)},
    {"cuGraphInstantiate", Match::kPrefix, LEADLINE_GPU_GRAPH_INSTANTIATE, false, {}},
    {"cuStreamBeginCapture", Match::kPrefix, LEADLINE_GPU_GRAPH_CREATE, false, {}},
    {"cuStreamEndCapture", Match::kPrefix, LEADLINE_GPU_GRAPH_CREATE, false, {}},
    {"cuGraphCreate", Match::kExact, LEADLINE_GPU_GRAPH_CREATE, false, {}},
    {"cuGraphUpload", Match::kPrefix, LEADLINE_GPU_OTHER, false, {}},
    {"cuModuleLoad", Match::kPrefix, LEADLINE_GPU_OTHER, false, {}},
    {"cuLibraryLoad", Match::kPrefix, LEADLINE_GPU_OTHER, false, {}},
});

bool ends_with_abi_version(std::string_view name, std::size_t* cut) {
  // "_v3020": four or five digits name the release of the runtime; "_v2" is part of a driver function's name.
  const auto at = name.rfind("_v");
  if (at == std::string_view::npos) return false;
  const std::string_view digits = name.substr(at + 2);
  const bool release = digits.size() >= 4 &&
                       std::all_of(digits.begin(), digits.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  if (release) *cut = at;
  return release;
}

bool is_per_thread(std::string_view name) {
  std::size_t cut = name.size();
  ends_with_abi_version(name, &cut);
  const std::string_view rest = name.substr(0, cut);
  return rest.ends_with("_ptsz") || rest.ends_with("_ptds");
}

}  // namespace

std::string_view plain_name(std::string_view name) noexcept {
  std::size_t cut = name.size();
  ends_with_abi_version(name, &cut);
  name = name.substr(0, cut);
  if (name.ends_with("_ptsz") || name.ends_with("_ptds")) name.remove_suffix(5);
  return name;
}

ApiCall classify(std::string_view name) {
  ApiCall call;
  const std::string_view plain = plain_name(name);
  call.name = plain;
  call.per_thread_stream = is_per_thread(name);
  for (const Rule& rule : kRules) {
    if (rule.match == Match::kExact ? plain != rule.name : !plain.starts_with(rule.name)) continue;
    // A getter may begin like a verb ("cuModuleLoad" and "cuModuleGetLoadingMode" do not, but "cudaMallocGet..."
    // might).
    if (plain.find("Get") != std::string_view::npos || plain.find("Query") != std::string_view::npos) break;
    call.kind = rule.kind;
    call.arguments = rule.arguments;
    call.makes_work = rule.makes_work;
    call.followed = true;
    break;
  }
  return call;
}

void ApiTable::load(const CuptiFunctions& cupti) {
  constexpr std::uint32_t kMostCallbacks = 4096;  // CUDA 13.5 has 880; a library that never says "invalid" must end too
  const auto read = [&](cupti::Domain domain, std::vector<ApiCall>* calls) {
    calls->assign(1, ApiCall{});  // id 0 is "invalid"
    for (std::uint32_t cbid = 1; cbid < kMostCallbacks; ++cbid) {
      const char* name = nullptr;
      if (cupti.get_callback_name(domain, cbid, &name) != cupti::kSuccess || !name) break;
      calls->push_back(classify(name));
    }
  };
  read(cupti::Domain::kDriver, &driver_);
  read(cupti::Domain::kRuntime, &runtime_);
}

const std::vector<ApiCall>& ApiTable::calls(cupti::Domain domain) const noexcept {
  return domain == cupti::Domain::kDriver ? driver_ : runtime_;
}

const ApiCall* ApiTable::find(cupti::Domain domain, std::uint32_t cbid) const noexcept {
  const std::vector<ApiCall>& calls = this->calls(domain);
  return cbid < calls.size() ? &calls[cbid] : nullptr;
}

std::size_t ApiTable::followed() const noexcept {
  const auto count = [](const std::vector<ApiCall>& calls) {
    return static_cast<std::size_t>(
        std::count_if(calls.begin(), calls.end(), [](const ApiCall& c) { return c.followed; }));
  };
  return count(driver_) + count(runtime_);
}

}  // namespace leadline::nvidia
