// Parameter structures of the calls the fakes export, as CUPTI hands them to callbacks. tests/nvidia/test_abi.py
// compares the offsets Leadline reads with the vendor's generated headers, so a mistake here cannot hide one there.
#pragma once

#include <cstddef>
#include <cstdint>

namespace leadline::testing {

struct Dim3 {
  std::uint32_t x, y, z;
};
struct LaunchConfig {
  Dim3 grid;
  Dim3 block;
  std::size_t dynamic_shared;
  void* stream;
};
struct CudaLaunchKernelParams {
  const void* function;
  Dim3 grid;
  Dim3 block;
  void** args;
  std::size_t shared;
  void* stream;
};
struct CudaLaunchKernelExParams {
  const LaunchConfig* config;
  const void* function;
  void** args;
};
struct CuLaunchKernelParams {
  void* function;
  std::uint32_t grid[3];
  std::uint32_t block[3];
  std::uint32_t shared;
  void* stream;
  void** params;
  void** extra;
};
struct CudaMemcpyAsyncParams {
  void* destination;
  const void* source;
  std::size_t bytes;
  std::int32_t kind;
  void* stream;
};
struct CuMemcpyAsyncParams {
  std::uint64_t destination;
  std::uint64_t source;
  std::size_t bytes;
  void* stream;
};
struct MemsetAsyncParams {
  void* address;
  std::int32_t value;
  std::size_t bytes;
  void* stream;
};
struct MallocParams {
  void** address;
  std::size_t bytes;
};
struct MallocAsyncParams {
  void** address;
  std::size_t bytes;
  void* stream;
};
struct FreeParams {
  void* address;
};
struct FreeAsyncParams {
  void* address;
  void* stream;
};
struct StreamParams {
  void* stream;
};
struct EventParams {
  void* event;
};
struct EventRecordParams {
  void* event;
  void* stream;
};
struct StreamWaitEventParams {
  void* stream;
  void* event;
  std::uint32_t flags;
};
struct GraphLaunchParams {
  void* graph;
  void* stream;
};

}  // namespace leadline::testing
