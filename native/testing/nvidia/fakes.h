// Opens the fake libraries as a program's loader would, and holds the functions a program calls.
#pragma once

#include <dlfcn.h>

#include <stdexcept>
#include <string>

#include "testing/nvidia/cuda_params.h"
#include "testing/nvidia/fake_api.h"
#include "testing/nvidia/fake_gpu.h"

namespace leadline::testing {

class Fakes {
 public:
  // CUPTI is left to the provider, unless it is to be there already (`cupti`).
  explicit Fakes(const std::string& folder, bool cupti = false) {
    open(folder + "/libcuda.so.1");
    void* runtime = open(folder + "/libcudart.so.13");
    if (cupti) open(folder + "/libcupti.so.13");
    bind(runtime, "cudaLaunchKernel", launch);
    bind(runtime, "cudaLaunchKernel_ptsz", launch_per_thread);
    bind(runtime, "cudaLaunchKernelExC", launch_ex);
    bind(runtime, "cudaLaunchCooperativeKernel", launch_cooperative);
    bind(runtime, "cudaMemcpyAsync", memcpy_async);
    bind(runtime, "cudaMemsetAsync", memset_async);
    bind(runtime, "cudaMalloc", malloc);
    bind(runtime, "cudaFree", free);
    bind(runtime, "cudaStreamSynchronize", stream_synchronize);
    bind(runtime, "cudaDeviceSynchronize", device_synchronize);
    bind(runtime, "cudaEventRecord", event_record);
    bind(runtime, "cudaEventSynchronize", event_synchronize);
    bind(runtime, "cudaStreamWaitEvent", stream_wait_event);
    bind(runtime, "cudaStreamBeginCapture", begin_capture);
    bind(runtime, "cudaStreamEndCapture", end_capture);
    bind(runtime, "cudaGraphInstantiate", graph_instantiate);
    bind(runtime, "cudaGraphLaunch", graph_launch);
    bind(runtime, "cudaGetLastError", get_last_error);
    bind(runtime, "cuLaunchKernel", cu_launch);
  }

  FakeGpu& gpu() { return FakeGpu::instance(); }

  int (*launch)(const void*, Dim3, Dim3, void**, std::size_t, void*) = nullptr;
  int (*launch_per_thread)(const void*, Dim3, Dim3, void**, std::size_t, void*) = nullptr;
  int (*launch_ex)(const LaunchConfig*, const void*, void**) = nullptr;
  int (*launch_cooperative)(const void*, Dim3, Dim3, void**, std::size_t, void*) = nullptr;
  int (*memcpy_async)(void*, const void*, std::size_t, int, void*) = nullptr;
  int (*memset_async)(void*, int, std::size_t, void*) = nullptr;
  int (*malloc)(void**, std::size_t) = nullptr;
  int (*free)(void*) = nullptr;
  int (*stream_synchronize)(void*) = nullptr;
  int (*device_synchronize)() = nullptr;
  int (*event_record)(void*, void*) = nullptr;
  int (*event_synchronize)(void*) = nullptr;
  int (*stream_wait_event)(void*, void*, unsigned) = nullptr;
  int (*begin_capture)(void*, int) = nullptr;
  int (*end_capture)(void*, void**) = nullptr;
  int (*graph_instantiate)(void**, void*, unsigned long long) = nullptr;
  int (*graph_launch)(void*, void*) = nullptr;
  int (*get_last_error)() = nullptr;
  int (*cu_launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**,
                   void**) = nullptr;

 private:
  static void* open(const std::string& path) {
    void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (!handle) throw std::runtime_error(::dlerror());
    return handle;
  }
  template <class F>
  static void bind(void* handle, const char* name, F& slot) {
    slot = reinterpret_cast<F>(::dlsym(handle, name));
    if (!slot) throw std::runtime_error(std::string("the fakes have no ") + name);
  }
};

}  // namespace leadline::testing
