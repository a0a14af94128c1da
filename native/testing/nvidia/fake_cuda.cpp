// The fake driver library: the vendor's names, the fake GPU behind them.
//
// A kernel's "function" is a FakeKernel, a stream or event handle is the fake's object, as in a program nothing else is
// known.
#include <cstring>

#include "testing/nvidia/cuda_params.h"
#include "testing/nvidia/fake_api.h"
#include "testing/nvidia/fake_gpu.h"

using namespace leadline::testing;  // NOLINT: one file, exported C names only

namespace {

FakeGpu& gpu() { return FakeGpu::instance(); }

FakeStream* stream_of(void* handle) { return handle ? static_cast<FakeStream*>(handle) : gpu().stream(0); }

constexpr auto kDriver = cupti::Domain::kDriver;

int launch(std::uint32_t cbid, const char* name, void* function, std::uint32_t grid, std::uint32_t block,
           std::uint32_t shared, void* stream, const void* params) {
  FakeStream* on = stream_of(stream);
  ApiScope scope(kDriver, cbid, name, params, gpu().context(on->device), static_cast<const FakeKernel*>(function));
  const auto& kernel = *static_cast<const FakeKernel*>(function);
  if (kernel.fails) return scope.done(1);
  KernelShape shape;
  shape.grid = static_cast<std::int32_t>(grid);
  shape.block = static_cast<std::int32_t>(block);
  shape.registers = static_cast<std::uint16_t>(kernel.registers);
  shape.static_shared = kernel.static_shared;
  shape.dynamic_shared = static_cast<std::int32_t>(shared);
  gpu().launch(on, kernel.name, shape, kernel.duration_ns, scope.correlation());
  return scope.done(0);
}

std::int64_t copy_time(std::size_t bytes) { return static_cast<std::int64_t>(bytes / 10) + 100; }

}  // namespace

extern "C" {

FakeGpu* fake_gpu() { return &FakeGpu::instance(); }

// For programs in other languages: a GPU with CUPTI of this version, held by a tool of this name (or "").
void fake_test_setup(std::uint32_t cupti_version, const char* holder) {
  gpu().reset();
  gpu().cupti_version = cupti_version;
  gpu().driver_cuda_version = 13050;
  gpu().holder = holder;
  gpu().real_clock = true;
  gpu().read_environment();
}
// CPU time that threads took in the device's waits: the truth about spinning.
std::int64_t fake_test_waiting_ran_ns() { return gpu().waiting_ran_ns.load(); }
void fake_test_sample(const char* kernel, std::uint64_t offset, const char* stall, std::uint32_t count,
                      std::uint32_t latency) {
  const std::lock_guard lock(gpu().mutex);
  gpu().sampling.pcs[kernel].push_back({kernel, offset, fake_stall_reason(stall), count, latency});
}
// What a kernel's counters say: percent of occupancy, tensor pipes and memory, and bytes in a nanosecond.
void fake_test_rates(const char* kernel, double warps, double tensor, double dram, double bytes) {
  const std::lock_guard lock(gpu().mutex);
  FakeRates& rates = gpu().counting.rates[kernel];
  rates.warps = warps;
  rates.tensor = tensor;
  rates.dram = dram;
  rates.bytes = bytes;
}
// And what it does with memory in a nanosecond: turns of shared memory and its conflicts, loads and their sectors.
void fake_test_memory(const char* kernel, double wavefronts, double conflicts, double requests, double sectors) {
  const std::lock_guard lock(gpu().mutex);
  FakeRates& rates = gpu().counting.rates[kernel];
  rates.wavefronts = wavefronts;
  rates.conflicts = conflicts;
  rates.requests = requests;
  rates.sectors = sectors;
}
void fake_test_refuse_sampling(std::int32_t result) {
  gpu().sampling.enable_result = gpu().counting.enable_result = result;
}
void fake_test_lose_device() { gpu().lose_device(); }
// Records come in this order (0: as they were made, 1: the other way round, 2: in any), the newest `hold_back` of them
// when they are asked for, and so many in a buffer.
void fake_test_delivery(std::int32_t order, std::size_t hold_back, std::size_t records_per_buffer) {
  gpu().delivery = {static_cast<Delivery::Order>(order), hold_back, 0, records_per_buffer};
}
std::uint32_t fake_test_finalized() { return gpu().finalized; }
std::uint64_t fake_test_enabled_callbacks() {
  const std::lock_guard lock(gpu().mutex);
  return gpu().callback ? gpu().enabled.size() : 0;
}

int cuInit(unsigned) { return gpu().start(); }
// The program has not called cuInit yet.
void fake_test_not_started() { gpu().started.store(false); }
int cuDriverGetVersion(int* version) {
  ApiScope scope(kDriver, 2, "cuDriverGetVersion", &version, nullptr);
  *version = gpu().driver_cuda_version;
  return scope.done(0);
}
int cuDeviceGetCount(int* count) {
  if (gpu().init_result != cuda::kSuccess || !gpu().started.load()) return cuda::kNotInitialized;
  *count = static_cast<int>(gpu().devices.size());
  return 0;
}
int cuDeviceGet(int* device, int index) {
  *device = index;
  return index < static_cast<int>(gpu().devices.size()) ? 0 : 101;
}
int cuDeviceGetName(char* name, int size, int device) {
  std::strncpy(name, gpu().devices[static_cast<std::size_t>(device)].name.c_str(), static_cast<std::size_t>(size) - 1);
  return 0;
}
int cuDeviceGetAttribute(int* value, cuda::Attribute which, int device) {
  const auto& attributes = gpu().devices[static_cast<std::size_t>(device)].attributes;
  const auto found = attributes.find(which);
  if (found == attributes.end()) return 1;
  *value = found->second;
  return 0;
}
int cuDeviceTotalMem_v2(std::size_t* bytes, int device) {
  *bytes = gpu().devices[static_cast<std::size_t>(device)].memory_bytes;
  return 0;
}
int cuDeviceGetUuid_v2(cuda::Uuid* uuid, int device) {
  for (int i = 0; i < 16; ++i) uuid->bytes[i] = static_cast<unsigned char>(i + device);
  return 0;
}
int cuCtxGetCurrent(void** context) {
  *context = gpu().context();
  return 0;
}
int cuDevicePrimaryCtxRetain(void** context, int device) {
  *context = gpu().context(device);
  return 0;
}
int cuDevicePrimaryCtxGetState(int device, unsigned* flags, int* active) {
  *flags = 0;
  *active = gpu().has_context(device) ? 1 : 0;
  return 0;
}
int cuCtxGetDevice(int* device) {
  *device = 0;
  return 0;
}
int cuGetErrorString(int, const char** text) {
  *text = "an error of the fake driver";
  return 0;
}

int cuLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void* stream, void** kernel_params, void** extra) {
  const CuLaunchKernelParams params{function, {gx, gy, gz}, {bx, by, bz}, shared, stream, kernel_params, extra};
  return launch(307, "cuLaunchKernel", function, gx * gy * gz, bx * by * bz, shared, stream, &params);
}
int cuLaunchCooperativeKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                              unsigned bz, unsigned shared, void* stream, void** kernel_params) {
  const CuLaunchKernelParams params{function, {gx, gy, gz}, {bx, by, bz}, shared, stream, kernel_params, nullptr};
  return launch(477, "cuLaunchCooperativeKernel", function, gx * gy * gz, bx * by * bz, shared, stream, &params);
}
int cuLaunchKernelEx(const LaunchConfig* config, void* function, void** kernel_params, void** extra) {
  const struct {
    const LaunchConfig* config;
    void* function;
    void** params;
    void** extra;
  } params{config, function, kernel_params, extra};
  return launch(652, "cuLaunchKernelEx", function, config->grid.x * config->grid.y * config->grid.z,
                config->block.x * config->block.y * config->block.z, static_cast<std::uint32_t>(config->dynamic_shared),
                config->stream, &params);
}

int cuMemcpyHtoDAsync_v2(std::uint64_t destination, const void* source, std::size_t bytes, void* stream) {
  const CuMemcpyAsyncParams params{destination, reinterpret_cast<std::uint64_t>(source), bytes, stream};
  ApiScope scope(kDriver, 277, "cuMemcpyHtoDAsync_v2", &params, gpu().context(stream_of(stream)->device));
  gpu().copy(stream_of(stream), cupti::CopyKind::kHtoD, cupti::MemoryKind::kPinned, cupti::MemoryKind::kDevice, bytes,
             copy_time(bytes), scope.correlation());
  return scope.done(0);
}
int cuMemcpyDtoHAsync_v2(void* destination, std::uint64_t source, std::size_t bytes, void* stream) {
  const CuMemcpyAsyncParams params{reinterpret_cast<std::uint64_t>(destination), source, bytes, stream};
  ApiScope scope(kDriver, 279, "cuMemcpyDtoHAsync_v2", &params, gpu().context(stream_of(stream)->device));
  gpu().copy(stream_of(stream), cupti::CopyKind::kDtoH, cupti::MemoryKind::kDevice, cupti::MemoryKind::kPageable, bytes,
             copy_time(bytes), scope.correlation());
  return scope.done(0);
}
int cuMemsetD8Async(std::uint64_t address, unsigned char value, std::size_t bytes, void* stream) {
  const MemsetAsyncParams params{reinterpret_cast<void*>(address), value, bytes, stream};
  ApiScope scope(kDriver, 216, "cuMemsetD8Async", &params, gpu().context(stream_of(stream)->device));
  gpu().set(stream_of(stream), bytes, copy_time(bytes), scope.correlation());
  return scope.done(0);
}

int cuMemAlloc_v2(void** address, std::size_t bytes) {
  const MallocParams params{address, bytes};
  ApiScope scope(kDriver, 243, "cuMemAlloc_v2", &params, gpu().context());
  *address = fake_memory(bytes);
  return scope.done(0);
}
int cuMemFree_v2(void* address) {
  const FreeParams params{address};
  ApiScope scope(kDriver, 245, "cuMemFree_v2", &params, gpu().context());
  return scope.done(0);
}

int cuStreamSynchronize(void* stream) {
  const StreamParams params{stream};
  ApiScope scope(kDriver, 126, "cuStreamSynchronize", &params, gpu().context());
  gpu().synchronize(stream_of(stream), cupti::SyncType::kStream, scope.correlation());
  return scope.done(0);
}
int cuCtxSynchronize() {
  ApiScope scope(kDriver, 17, "cuCtxSynchronize", nullptr, gpu().context());
  gpu().synchronize(nullptr, cupti::SyncType::kContext, scope.correlation());
  return scope.done(0);
}
int cuEventCreate(void** event, unsigned) {
  ++gpu().event_calls;
  *event = new FakeEvent;
  return 0;
}
int cuEventDestroy_v2(void* event) {
  delete static_cast<FakeEvent*>(event);
  return 0;
}
int cuEventRecord(void* event, void* stream) {
  ++gpu().event_calls;
  const EventRecordParams params{event, stream};
  ApiScope scope(kDriver, 119, "cuEventRecord", &params, gpu().context());
  const std::lock_guard lock(gpu().mutex);
  static_cast<FakeEvent*>(event)->at_ns = std::max(gpu().now_ns.load(), stream_of(stream)->ready_ns);
  return scope.done(0);
}
int cuEventQuery(void* event) { return static_cast<FakeEvent*>(event)->at_ns <= gpu().now_ns.load() ? 0 : 600; }
int cuEventElapsedTime(float* ms, void* begin, void* end) {
  *ms = static_cast<float>(static_cast<FakeEvent*>(end)->at_ns - static_cast<FakeEvent*>(begin)->at_ns) / 1e6f;
  return 0;
}
int cuEventSynchronize(void* event) {
  const EventParams params{event};
  ApiScope scope(kDriver, 121, "cuEventSynchronize", &params, gpu().context());
  gpu().synchronize(nullptr, cupti::SyncType::kEvent, scope.correlation());
  return scope.done(0);
}
int cuStreamWaitEvent(void* stream, void* event, unsigned flags) {
  const StreamWaitEventParams params{stream, event, flags};
  ApiScope scope(kDriver, 295, "cuStreamWaitEvent", &params, gpu().context());
  const std::lock_guard lock(gpu().mutex);
  FakeStream* waiting = stream_of(stream);
  waiting->ready_ns = std::max(waiting->ready_ns, static_cast<FakeEvent*>(event)->at_ns);
  return scope.done(0);
}
int cuStreamIsCapturing(void* stream, int* status) {
  *status = stream_of(stream)->capturing ? 1 : 0;
  return 0;
}
int cuThreadExchangeStreamCaptureMode(int* mode) {
  *mode = 2 - *mode;
  return 0;
}
int cuGraphLaunch(void* graph, void* stream) {
  const GraphLaunchParams params{graph, stream};
  ApiScope scope(kDriver, 514, "cuGraphLaunch", &params, gpu().context());
  gpu().graph_launch(static_cast<FakeGraph*>(graph), stream_of(stream), scope.correlation());
  return scope.done(0);
}

}  // extern "C"
