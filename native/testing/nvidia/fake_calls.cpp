// API calls of the fakes: their names and callback ids, and what CUPTI's hook does at begin and end of each.
#include <cstring>

#include "testing/nvidia/fake_api.h"
#include "testing/nvidia/fake_gpu.h"

namespace leadline::testing {
namespace {

thread_local std::uint32_t api_depth = 0;
thread_local std::uint32_t api_correlation = 0;

struct Named {
  std::uint32_t cbid;
  const char* name;
};

// Real ids and names of the functions the fakes export.
constexpr Named kDriver[] = {
    {2, "cuDriverGetVersion"},     {17, "cuCtxSynchronize"},           {119, "cuEventRecord"},
    {121, "cuEventSynchronize"},   {126, "cuStreamSynchronize"},       {243, "cuMemAlloc_v2"},
    {245, "cuMemFree_v2"},         {277, "cuMemcpyHtoDAsync_v2"},      {279, "cuMemcpyDtoHAsync_v2"},
    {281, "cuMemcpyDtoDAsync_v2"}, {216, "cuMemsetD8Async"},           {295, "cuStreamWaitEvent"},
    {307, "cuLaunchKernel"},       {477, "cuLaunchCooperativeKernel"}, {514, "cuGraphLaunch"},
    {652, "cuLaunchKernelEx"},     {598, "cuMemAllocAsync"},           {600, "cuMemFreeAsync"},
    {305, "cuCtxGetCurrent"}};
constexpr Named kRuntime[] = {{10, "cudaGetLastError_v3020"},
                              {20, "cudaMalloc_v3020"},
                              {22, "cudaFree_v3020"},
                              {41, "cudaMemcpyAsync_v3020"},
                              {51, "cudaMemsetAsync_v3020"},
                              {131, "cudaStreamSynchronize_v3020"},
                              {135, "cudaEventRecord_v3020"},
                              {137, "cudaEventSynchronize_v3020"},
                              {147, "cudaStreamWaitEvent_v3020"},
                              {165, "cudaDeviceSynchronize_v3020"},
                              {211, "cudaLaunchKernel_v7000"},
                              {214, "cudaLaunchKernel_ptsz_v7000"},
                              {269, "cudaLaunchCooperativeKernel_v9000"},
                              {311, "cudaGraphLaunch_v10000"},
                              {315, "cudaStreamBeginCapture_v10000"},
                              {319, "cudaStreamEndCapture_v10000"},
                              {373, "cudaMallocAsync_v11020"},
                              {375, "cudaFreeAsync_v11020"},
                              {430, "cudaLaunchKernelExC_v11060"},
                              {443, "cudaGraphInstantiate_v12000"}};

}  // namespace

const char* callback_name(cupti::Domain domain, std::uint32_t cbid) {
  if (cbid == 0 || cbid > 900) return nullptr;
  const auto look = [&](const auto& names) -> const char* {
    for (const Named& named : names) {
      if (named.cbid == cbid) return named.name;
    }
    return "functionOfNoInterest";
  };
  return domain == cupti::Domain::kDriver ? look(kDriver) : look(kRuntime);
}

std::uint32_t callback_id(cupti::Domain domain, const char* name) {
  for (std::uint32_t cbid = 1; cbid <= 900; ++cbid) {
    if (std::strcmp(callback_name(domain, cbid), name) == 0) return cbid;
  }
  return 0;
}

bool ApiScope::inside() { return api_depth > 0; }

ApiScope::ApiScope(cupti::Domain domain, std::uint32_t cbid, const char* name, const void* params, FakeContext* context,
                   const FakeKernel* kernel)
    : domain_(domain), cbid_(cbid) {
  FakeGpu& gpu = FakeGpu::instance();
  if (api_depth == 0) ++gpu.calls_of_program;
  if (api_depth++ == 0 || gpu.inner_ids_differ) api_correlation = gpu.next_correlation_.fetch_add(1);
  data_.function_name = name;
  data_.params = params;
  data_.return_value = &result_;
  data_.context = context;
  data_.symbol_name = kernel ? kernel->name : nullptr;
  data_.context_uid = context ? context->id : 0;
  data_.correlation_id = api_correlation;
  tell(cupti::Site::kEnter);
}

ApiScope::~ApiScope() {
  FakeGpu::instance().tick(1000);
  tell(cupti::Site::kExit);
  if (--api_depth == 0) --FakeGpu::instance().calls_of_program;
}

void ApiScope::tell(cupti::Site site) {
  FakeGpu& gpu = FakeGpu::instance();
  cupti::CallbackFunction function = nullptr;
  void* user = nullptr;
  {
    const std::lock_guard lock(gpu.mutex);
    if (gpu.is_enabled(domain_, cbid_) && (gpu.tells_inner_calls || api_depth == 1)) {
      function = gpu.callback;
      user = gpu.callback_user;
    }
  }
  // As in CUPTI, a call whose begin was not told may still be told at its end.
  data_.site = site;
  if (function) ++gpu.callbacks_told;
  if (function) function(user, domain_, cbid_, &data_);
}

}  // namespace leadline::testing
