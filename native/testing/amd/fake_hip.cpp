// The fake HIP runtime: each call tells the tool of its begin and end, as the real one does through rocprofiler-sdk's
// tables. Arguments stand in the tool's payload as in rocprofiler-sdk/hip/api_args.h.
#include <atomic>
#include <cstring>

#include "testing/amd/fake_rocm.h"

using namespace leadline::testing::rocm;  // NOLINT: one file, exported C names only

namespace {

constexpr int kInvalid = 1;

FakeRocm& rocm() { return FakeRocm::instance(); }

struct Payload {
  std::uint64_t size = sizeof(Payload);
  std::uint8_t arguments[256] = {};
  std::uint8_t result[leadline::amd::sdk::kHipReturnBytes] = {};
};
static_assert(sizeof(Payload) == 8 + 256 + 24);

// `ticks`: how long the call takes the CPU.
template <class Arguments, class Run>
int call(const char* name, const Arguments& arguments, const Run& run, std::int64_t ticks = 2000) {
  rocm().start_hip();
  Payload payload;
  static_assert(sizeof arguments <= sizeof payload.arguments);
  std::memcpy(payload.arguments, &arguments, sizeof arguments);
  const std::int32_t operation = hip_operation(name);
  rocm().tell(rocm().kind_hip(), operation, sdk::Phase::kEnter, &payload);
  rocm().trace(name, tracer::Phase::kEnter, &arguments, sizeof arguments);
  const int result = run();
  std::memcpy(payload.result, &result, sizeof result);
  rocm().tick(ticks);
  rocm().tell(rocm().kind_hip(), operation, sdk::Phase::kExit, &payload);
  rocm().trace(name, tracer::Phase::kExit, &arguments, sizeof arguments);
  return result;
}

struct None {
  char empty = 0;
};

thread_local int this_device = 0;

Stream* on(void* stream) { return stream ? static_cast<Stream*>(stream) : rocm().stream(0, this_device); }

int run(const void* function, sdk::Dim3 grid, sdk::Dim3 block, std::size_t shared, void* stream) {
  const auto& kernel = *static_cast<const Kernel*>(function);
  if (kernel.fails) return kInvalid;
  rocm().launch(on(stream), kernel, grid, block, static_cast<std::uint32_t>(shared));
  return 0;
}

struct LaunchArguments {
  const void* function;
  sdk::Dim3 grid;
  sdk::Dim3 block;
  void** args;
  std::size_t shared;
  void* stream;
};

}  // namespace

extern "C" {

int hipGetLastError() {
  return call(
      "hipGetLastError", None{}, [] { return 0; }, 1000);
}
int hipSetDevice(int device) {
  return call(
      "hipSetDevice", device,
      [&] {
        this_device = device;
        return 0;
      },
      0);
}
int hipLaunchKernel(const void* function, sdk::Dim3 grid, sdk::Dim3 block, void** args, std::size_t shared,
                    void* stream) {
  return call("hipLaunchKernel", LaunchArguments{function, grid, block, args, shared, stream},
              [&] { return run(function, grid, block, shared, stream); });
}
int hipLaunchCooperativeKernel(const void* function, sdk::Dim3 grid, sdk::Dim3 block, void** args, unsigned shared,
                               void* stream) {
  const struct {
    const void* function;
    sdk::Dim3 grid;
    sdk::Dim3 block;
    void** args;
    unsigned shared;
    void* stream;
  } arguments{function, grid, block, args, shared, stream};
  return call("hipLaunchCooperativeKernel", arguments, [&] { return run(function, grid, block, shared, stream); });
}
int hipModuleLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                          unsigned shared, void* stream, void** args, void** extra) {
  const struct {
    void* function;
    unsigned grid[3];
    unsigned block[3];
    unsigned shared;
    void* stream;
    void** args;
    void** extra;
  } arguments{function, {gx, gy, gz}, {bx, by, bz}, shared, stream, args, extra};
  return call(
      "hipModuleLaunchKernel", arguments,
      [&] {
        return run(function, {gx, gy, gz}, {bx, by, bz}, shared, stream);
      },
      1000);
}
struct HipLaunchConfig {
  sdk::Dim3 grid;
  sdk::Dim3 block;
  std::size_t shared;
  void* stream;
};
int hipLaunchKernelExC(const HipLaunchConfig* config, const void* function, void** args) {
  const struct {
    const void* config;
    const void* function;
    void** args;
  } arguments{config, function, args};
  return call("hipLaunchKernelExC", arguments,
              [&] { return run(function, config->grid, config->block, config->shared, config->stream); });
}
int hipMemcpyAsync(void* destination, const void* source, std::size_t bytes, int kind, void* stream) {
  const struct {
    void* destination;
    const void* source;
    std::size_t bytes;
    int kind;
    void* stream;
  } arguments{destination, source, bytes, kind, stream};
  return call("hipMemcpyAsync", arguments, [&] {
    // HIP's kinds: 1 host to device, 2 device to host, 3 device to device.
    const auto operation = kind == 1   ? sdk::CopyOperation::kHostToDevice
                           : kind == 2 ? sdk::CopyOperation::kDeviceToHost
                                       : sdk::CopyOperation::kDeviceToDevice;
    rocm().copy(on(stream), operation, bytes, static_cast<std::int64_t>(100 + bytes / 10));
    return 0;
  });
}
int hipMemcpyPeerAsync(void* destination, int to, const void* source, int from, std::size_t bytes, void* stream) {
  const struct {
    void* destination;
    int to;
    const void* source;
    int from;
    std::size_t bytes;
    void* stream;
  } arguments{destination, to, source, from, bytes, stream};
  return call("hipMemcpyPeerAsync", arguments, [&] {
    rocm().copy(on(stream), sdk::CopyOperation::kDeviceToDevice, bytes, static_cast<std::int64_t>(100 + bytes / 10),
                to);
    return 0;
  });
}
int hipHostMalloc(void** address, std::size_t bytes, unsigned flags) {
  const struct {
    void** address;
    std::size_t bytes;
    unsigned flags;
  } arguments{address, bytes, flags};
  return call("hipHostMalloc", arguments, [&] {
    static std::atomic<std::uint64_t> next{0x5e0000000000};
    *address = reinterpret_cast<void*>(next.fetch_add((bytes + 4095) / 4096 * 4096));
    return 0;
  });
}
int hipHostFree(void* address) {
  return call("hipHostFree", address, [] { return 0; });
}
int hipMemsetAsync(void* address, int value, std::size_t bytes, void* stream) {
  const struct {
    void* address;
    int value;
    std::size_t bytes;
    void* stream;
  } arguments{address, value, bytes, stream};
  return call("hipMemsetAsync", arguments, [&] {
    Kernel fill;  // HIP sets memory with a kernel of its own
    fill.name = "__amd_rocclr_fillBufferAligned";
    fill.duration_ns = static_cast<std::int64_t>(100 + bytes / 10);
    rocm().launch(on(stream), fill, {1, 1, 1}, {256, 1, 1}, 0);
    return 0;
  });
}
int hipMalloc(void** address, std::size_t bytes) {
  const struct {
    void** address;
    std::size_t bytes;
  } arguments{address, bytes};
  return call("hipMalloc", arguments, [&] {
    static std::atomic<std::uint64_t> next{0x7e0000000000};
    *address = reinterpret_cast<void*>(next.fetch_add((bytes + 511) / 512 * 512));
    return 0;
  });
}
int hipFree(void* address) {
  return call("hipFree", address, [] { return 0; });
}
int hipStreamCreate(void** stream) {
  constexpr std::uint32_t kFirst = 20;  // below it are the numbers that tests give themselves
  static std::atomic<std::uint32_t> next{kFirst};
  rocm().start_hip();
  *stream = rocm().stream(next.fetch_add(1), this_device);
  return 0;
}
int hipStreamSynchronize(void* stream) {
  return call("hipStreamSynchronize", stream, [&] {
    rocm().synchronize(on(stream));
    return 0;
  });
}
int hipDeviceSynchronize() {
  return call("hipDeviceSynchronize", None{}, [] {
    rocm().synchronize(nullptr);
    return 0;
  });
}
int hipEventRecord(void* event, void* stream) {
  const struct {
    void* event;
    void* stream;
  } arguments{event, stream};
  return call("hipEventRecord", arguments, [&] {
    static_cast<Event*>(event)->at_ns = on(stream)->ready_ns;
    return 0;
  });
}
int hipEventSynchronize(void* event) {
  return call("hipEventSynchronize", event, [&] {
    std::int64_t now = rocm().now_ns.load();
    const std::int64_t until = static_cast<Event*>(event)->at_ns;
    while (now < until && !rocm().now_ns.compare_exchange_weak(now, until)) {
    }
    return 0;
  });
}
int hipStreamWaitEvent(void* stream, void* event, unsigned flags) {
  const struct {
    void* stream;
    void* event;
    unsigned flags;
  } arguments{stream, event, flags};
  return call("hipStreamWaitEvent", arguments, [&] {
    Stream* waiting = on(stream);
    if (waiting->ready_ns < static_cast<Event*>(event)->at_ns) waiting->ready_ns = static_cast<Event*>(event)->at_ns;
    return 0;
  });
}
int hipStreamBeginCapture(void* stream, int mode) {
  const struct {
    void* stream;
    int mode;
  } arguments{stream, mode};
  return call(
      "hipStreamBeginCapture", arguments,
      [&] {
        on(stream)->capturing = rocm().new_graph();
        return 0;
      },
      1000);
}
int hipStreamEndCapture(void* stream, void** graph) {
  const struct {
    void* stream;
    void** graph;
  } arguments{stream, graph};
  return call(
      "hipStreamEndCapture", arguments,
      [&] {
        *graph = on(stream)->capturing;
        on(stream)->capturing = nullptr;
        return 0;
      },
      1000);
}
int hipGraphInstantiate(void** executable, void* graph, void** node, char* log, std::size_t bytes) {
  const struct {
    void** executable;
    void* graph;
    void** node;
    char* log;
    std::size_t bytes;
  } arguments{executable, graph, node, log, bytes};
  return call(
      "hipGraphInstantiate", arguments,
      [&] {
        Graph* made = rocm().new_graph();
        *made = *static_cast<Graph*>(graph);
        *executable = made;
        return 0;
      },
      1000);
}
int hipGraphLaunch(void* executable, void* stream) {
  const struct {
    void* executable;
    void* stream;
  } arguments{executable, stream};
  return call("hipGraphLaunch", arguments, [&] {
    rocm().replay(static_cast<Graph*>(executable), on(stream));
    return 0;
  });
}
int hipGraphDestroy(void* graph) {
  return call(
      "hipGraphDestroy", graph, [] { return 0; }, 0);
}
int hipGraphExecDestroy(void* executable) {
  return call(
      "hipGraphExecDestroy", executable, [] { return 0; }, 0);
}
int hipGetDeviceCount(int* count) {
  return call(
      "hipGetDeviceCount", count,
      [&] {
        *count = static_cast<int>(rocm().devices.size());
        return 0;
      },
      0);
}
int hipDeviceGetName(char* name, int bytes, int device) {
  std::strncpy(name, rocm().devices.at(static_cast<std::size_t>(device)).product.c_str(),
               static_cast<std::size_t>(bytes));
  return 0;
}
int hipDeviceTotalMem(std::size_t* bytes, int device) {
  *bytes = rocm().devices.at(static_cast<std::size_t>(device)).memory_bytes;
  return 0;
}
int hipDeviceGetAttribute(int* value, int attribute, int device) {
  const Device& of = rocm().devices.at(static_cast<std::size_t>(device));
  *value = static_cast<int>(attribute == 63 ? of.compute_units : attribute == 87 ? of.wave : 0);
  return *value > 0 ? 0 : kInvalid;
}
// For programs in other languages.
void fake_real_clock() { rocm().real_clock = true; }

}  // extern "C"
