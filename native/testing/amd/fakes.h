// Opens the fake libraries as a program's loader would, and holds the functions a program calls.
#pragma once

#include <dlfcn.h>

#include <stdexcept>
#include <string>

#include "providers/amd/provider.h"
#include "testing/amd/fake_rocm.h"

namespace leadline::testing::rocm {

struct LaunchConfig {
  sdk::Dim3 grid;
  sdk::Dim3 block;
  std::size_t shared;
  void* stream;
};

class Fakes {
 public:
  // The tool is there before HIP is, as under `leadline run`.
  explicit Fakes(const std::string& folder) {
    if (FakeRocm::instance().initialized == 0) {
      amd::Options early;
      early.candidates = {folder + "/librocprofiler-sdk.so.1"};
      amd::start(early);
      amd::stop();
    }
    void* hip = open(folder + "/libamdhip64.so.7");
    void* rccl = open(folder + "/librccl.so.1");
    void* hsa = open(folder + "/libhsa-runtime64.so.1");
    void* roctx = open(folder + "/librocprofiler-sdk-roctx.so.1");
    bind(hip, "hipLaunchKernel", launch);
    bind(hip, "hipLaunchCooperativeKernel", launch_cooperative);
    bind(hip, "hipLaunchKernelExC", launch_ex);
    bind(hip, "hipModuleLaunchKernel", module_launch);
    bind(hip, "hipMemcpyAsync", memcpy_async);
    bind(hip, "hipMemsetAsync", memset_async);
    bind(hip, "hipMalloc", malloc);
    bind(hip, "hipFree", free);
    bind(hip, "hipStreamSynchronize", stream_synchronize);
    bind(hip, "hipDeviceSynchronize", device_synchronize);
    bind(hip, "hipEventRecord", event_record);
    bind(hip, "hipEventSynchronize", event_synchronize);
    bind(hip, "hipStreamWaitEvent", stream_wait_event);
    bind(hip, "hipStreamBeginCapture", begin_capture);
    bind(hip, "hipStreamEndCapture", end_capture);
    bind(hip, "hipGraphInstantiate", graph_instantiate);
    bind(hip, "hipGraphLaunch", graph_launch);
    bind(hip, "hipGraphDestroy", graph_destroy);
    bind(hip, "hipGraphExecDestroy", graph_exec_destroy);
    bind(hip, "hipGetLastError", get_last_error);
    bind(hip, "hipSetDevice", set_device);
    bind(hip, "hipHostMalloc", host_malloc);
    bind(hip, "hipHostFree", host_free);
    bind(hip, "hipMemcpyPeerAsync", memcpy_peer_async);
    bind(rccl, "ncclAllReduce", all_reduce);
    bind(hsa, "hsa_amd_memory_async_copy", hsa_copy);
    bind(roctx, "roctxRangePushA", range_push);
    bind(roctx, "roctxRangePop", range_pop);
    bind(roctx, "roctxRangeStartA", range_start);
    bind(roctx, "roctxRangeStop", range_stop);
  }

  FakeRocm& rocm() { return FakeRocm::instance(); }

  int (*launch)(const void*, sdk::Dim3, sdk::Dim3, void**, std::size_t, void*) = nullptr;
  int (*launch_cooperative)(const void*, sdk::Dim3, sdk::Dim3, void**, unsigned, void*) = nullptr;
  int (*launch_ex)(const LaunchConfig*, const void*, void**) = nullptr;
  int (*module_launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**,
                       void**) = nullptr;
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
  int (*graph_instantiate)(void**, void*, void**, char*, std::size_t) = nullptr;
  int (*graph_launch)(void*, void*) = nullptr;
  int (*graph_destroy)(void*) = nullptr;
  int (*graph_exec_destroy)(void*) = nullptr;
  int (*get_last_error)() = nullptr;
  int (*set_device)(int) = nullptr;
  int (*host_malloc)(void**, std::size_t, unsigned) = nullptr;
  int (*host_free)(void*) = nullptr;
  int (*memcpy_peer_async)(void*, int, const void*, int, std::size_t, void*) = nullptr;
  int (*all_reduce)(const void*, void*, std::size_t, int, int, void*, void*) = nullptr;
  int (*hsa_copy)(void*, std::uint64_t, const void*, std::uint64_t, std::size_t) = nullptr;
  int (*range_push)(const char*) = nullptr;
  int (*range_pop)() = nullptr;
  std::uint64_t (*range_start)(const char*) = nullptr;
  void (*range_stop)(std::uint64_t) = nullptr;

 private:
  static void* open(const std::string& path) {
    void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (!handle) throw std::runtime_error(::dlerror());
    return handle;
  }
  template <class Function>
  static void bind(void* library, const char* name, Function& slot) {
    slot = reinterpret_cast<Function>(::dlsym(library, name));
    if (!slot) throw std::runtime_error(std::string("no function ") + name);
  }
};

}  // namespace leadline::testing::rocm
