// The fake runtime library: each call is one runtime API call that makes one driver API call inside, as the real one
// does.
#include <atomic>

#include "testing/nvidia/cuda_params.h"
#include "testing/nvidia/fake_api.h"
#include "testing/nvidia/fake_gpu.h"

using namespace leadline::testing;  // NOLINT: one file, exported C names only

extern "C" {
FakeGpu* fake_gpu();
int cuLaunchKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**);
int cuLaunchKernelEx(const LaunchConfig*, void*, void**, void**);
int cuLaunchCooperativeKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*,
                              void**);
int cuMemcpyHtoDAsync_v2(std::uint64_t, const void*, std::size_t, void*);
int cuMemcpyDtoHAsync_v2(void*, std::uint64_t, std::size_t, void*);
int cuMemsetD8Async(std::uint64_t, unsigned char, std::size_t, void*);
int cuMemAlloc_v2(void**, std::size_t);
int cuMemFree_v2(void*);
int cuStreamSynchronize(void*);
int cuCtxSynchronize();
int cuEventRecord(void*, void*);
int cuEventSynchronize(void*);
int cuStreamWaitEvent(void*, void*, unsigned);
int cuGraphLaunch(void*, void*);
}

namespace {
constexpr auto kRuntime = cupti::Domain::kRuntime;
FakeContext* context() { return fake_gpu()->context(); }
}  // namespace

extern "C" {

int cudaGetLastError() {
  ApiScope scope(kRuntime, 10, "cudaGetLastError", nullptr, context());
  return scope.done(0);
}
int cudaLaunchKernel(const void* function, Dim3 grid, Dim3 block, void** args, std::size_t shared, void* stream) {
  const CudaLaunchKernelParams params{function, grid, block, args, shared, stream};
  ApiScope scope(kRuntime, 211, "cudaLaunchKernel", &params, context(), static_cast<const FakeKernel*>(function));
  return scope.done(cuLaunchKernel(const_cast<void*>(function), grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                   static_cast<unsigned>(shared), stream, args, nullptr));
}
int cudaLaunchKernel_ptsz(const void* function, Dim3 grid, Dim3 block, void** args, std::size_t shared, void* stream) {
  const CudaLaunchKernelParams params{function, grid, block, args, shared, stream};
  ApiScope scope(kRuntime, 214, "cudaLaunchKernel_ptsz", &params, context(), static_cast<const FakeKernel*>(function));
  void* own = stream ? stream : fake_gpu()->stream(2);  // stream 2 plays the thread's own default stream
  return scope.done(cuLaunchKernel(const_cast<void*>(function), grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                   static_cast<unsigned>(shared), own, args, nullptr));
}
int cudaLaunchKernelExC(const LaunchConfig* config, const void* function, void** args) {
  const CudaLaunchKernelExParams params{config, function, args};
  ApiScope scope(kRuntime, 430, "cudaLaunchKernelExC", &params, context(), static_cast<const FakeKernel*>(function));
  return scope.done(cuLaunchKernelEx(config, const_cast<void*>(function), args, nullptr));
}
int cudaLaunchCooperativeKernel(const void* function, Dim3 grid, Dim3 block, void** args, std::size_t shared,
                                void* stream) {
  const CudaLaunchKernelParams params{function, grid, block, args, shared, stream};
  ApiScope scope(kRuntime, 269, "cudaLaunchCooperativeKernel", &params, context(),
                 static_cast<const FakeKernel*>(function));
  return scope.done(cuLaunchCooperativeKernel(const_cast<void*>(function), grid.x, grid.y, grid.z, block.x, block.y,
                                              block.z, static_cast<unsigned>(shared), stream, args));
}
int cudaMemcpyAsync(void* destination, const void* source, std::size_t bytes, int kind, void* stream) {
  const CudaMemcpyAsyncParams params{destination, source, bytes, kind, stream};
  ApiScope scope(kRuntime, 41, "cudaMemcpyAsync", &params, context());
  constexpr int kHostToHost = 0;
  constexpr int kHostToDevice = 1;
  if (kind == kHostToHost) {
    fake_gpu()->copy(static_cast<FakeStream*>(stream), cupti::CopyKind::kHtoH, cupti::MemoryKind::kPinned,
                     cupti::MemoryKind::kPageable, bytes, 5000, scope.correlation());
    return scope.done(0);
  }
  return scope.done(kind == kHostToDevice
                        ? cuMemcpyHtoDAsync_v2(reinterpret_cast<std::uint64_t>(destination), source, bytes, stream)
                        : cuMemcpyDtoHAsync_v2(destination, reinterpret_cast<std::uint64_t>(source), bytes, stream));
}
int cudaMemsetAsync(void* address, int value, std::size_t bytes, void* stream) {
  const MemsetAsyncParams params{address, value, bytes, stream};
  ApiScope scope(kRuntime, 51, "cudaMemsetAsync", &params, context());
  return scope.done(
      cuMemsetD8Async(reinterpret_cast<std::uint64_t>(address), static_cast<unsigned char>(value), bytes, stream));
}
int cudaMalloc(void** address, std::size_t bytes) {
  const MallocParams params{address, bytes};
  ApiScope scope(kRuntime, 20, "cudaMalloc", &params, context());
  return scope.done(cuMemAlloc_v2(address, bytes));
}
int cudaFree(void* address) {
  const FreeParams params{address};
  ApiScope scope(kRuntime, 22, "cudaFree", &params, context());
  return scope.done(cuMemFree_v2(address));
}
int cudaMallocAsync(void** address, std::size_t bytes, void* stream) {
  const MallocAsyncParams params{address, bytes, stream};
  ApiScope scope(kRuntime, 373, "cudaMallocAsync", &params, context());
  *address = fake_memory(bytes);
  return scope.done(0);
}
int cudaFreeAsync(void* address, void* stream) {
  const FreeAsyncParams params{address, stream};
  ApiScope scope(kRuntime, 375, "cudaFreeAsync", &params, context());
  return scope.done(0);
}
int cudaStreamCreate(void** stream) {
  constexpr std::uint32_t kFirst = 20;  // below it are the numbers that tests give themselves
  static std::atomic<std::uint32_t> next{kFirst};
  *stream = fake_gpu()->stream(next.fetch_add(1));
  return 0;
}
int cudaStreamSynchronize(void* stream) {
  const StreamParams params{stream};
  ApiScope scope(kRuntime, 131, "cudaStreamSynchronize", &params, context());
  return scope.done(cuStreamSynchronize(stream));
}
int cudaDeviceSynchronize() {
  ApiScope scope(kRuntime, 165, "cudaDeviceSynchronize", nullptr, context());
  return scope.done(cuCtxSynchronize());
}
int cudaEventRecord(void* event, void* stream) {
  const EventRecordParams params{event, stream};
  ApiScope scope(kRuntime, 135, "cudaEventRecord", &params, context());
  return scope.done(cuEventRecord(event, stream));
}
int cudaEventSynchronize(void* event) {
  const EventParams params{event};
  ApiScope scope(kRuntime, 137, "cudaEventSynchronize", &params, context());
  return scope.done(cuEventSynchronize(event));
}
int cudaStreamWaitEvent(void* stream, void* event, unsigned flags) {
  const StreamWaitEventParams params{stream, event, flags};
  ApiScope scope(kRuntime, 147, "cudaStreamWaitEvent", &params, context());
  return scope.done(cuStreamWaitEvent(stream, event, flags));
}
int cudaStreamBeginCapture(void* stream, int mode) {
  const struct {
    void* stream;
    int mode;
  } params{stream, mode};
  ApiScope scope(kRuntime, 315, "cudaStreamBeginCapture", &params, context());
  static_cast<FakeStream*>(stream)->capturing = fake_gpu()->new_graph();
  return scope.done(0);
}
int cudaStreamEndCapture(void* stream, void** graph) {
  const struct {
    void* stream;
    void** graph;
  } params{stream, graph};
  ApiScope scope(kRuntime, 319, "cudaStreamEndCapture", &params, context());
  *graph = static_cast<FakeStream*>(stream)->capturing;
  static_cast<FakeStream*>(stream)->capturing = nullptr;
  return scope.done(0);
}
int cudaGraphInstantiate(void** exec, void* graph, unsigned long long flags) {
  const struct {
    void** exec;
    void* graph;
    unsigned long long flags;
  } params{exec, graph, flags};
  ApiScope scope(kRuntime, 443, "cudaGraphInstantiate", &params, context());
  *exec = fake_gpu()->instantiate(static_cast<FakeGraph*>(graph));
  return scope.done(0);
}
int cudaGraphLaunch(void* graph, void* stream) {
  const GraphLaunchParams params{graph, stream};
  ApiScope scope(kRuntime, 311, "cudaGraphLaunch", &params, context());
  return scope.done(cuGraphLaunch(graph, stream));
}

}  // extern "C"
