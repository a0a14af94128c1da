#include "providers/nvidia/driver.h"

#include <sys/stat.h>

#include <array>
#include <cstdio>
#include <cstdlib>

namespace leadline::nvidia {
namespace {

template <class Function>
void bind(const Library& library, const char* name, Function*& slot) {
  slot = library.symbol<Function>(name);
}

std::string uuid_text(const cuda::Uuid& uuid, bool mig) {
  std::array<char, 64> text{};
  const unsigned char* b = uuid.bytes;
  std::snprintf(text.data(), text.size(), "%s-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
                mig ? "MIG" : "GPU", b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12],
                b[13], b[14], b[15]);
  return text.data();
}

}  // namespace

Driver::Driver(const Library& library) : path_(library.path()) {
  DriverFunctions& f = functions_;
  bind(library, "cuDriverGetVersion", f.driver_version);
  bind(library, "cuDeviceGetCount", f.device_count);
  bind(library, "cuDeviceGet", f.device_get);
  bind(library, "cuDeviceGetName", f.device_name);
  bind(library, "cuDeviceGetAttribute", f.device_attribute);
  bind(library, "cuDeviceTotalMem_v2", f.device_memory);
  bind(library, "cuDeviceGetUuid_v2", f.device_uuid);
  bind(library, "cuCtxGetCurrent", f.context_current);
  bind(library, "cuCtxGetDevice", f.context_device);
  bind(library, "cuCtxSetCurrent", f.context_set_current);
  bind(library, "cuCtxSynchronize", f.context_synchronize);
  bind(library, "cuDevicePrimaryCtxGetState", f.primary_context_state);
  bind(library, "cuGetErrorString", f.error_string);
  bind(library, "cuEventCreate", f.event_create);
  bind(library, "cuEventDestroy_v2", f.event_destroy);
  bind(library, "cuEventRecord", f.event_record);
  bind(library, "cuEventQuery", f.event_query);
  bind(library, "cuEventElapsedTime", f.event_elapsed);
  bind(library, "cuStreamIsCapturing", f.stream_is_capturing);
  bind(library, "cuThreadExchangeStreamCaptureMode", f.exchange_capture_mode);
}

std::optional<Driver> Driver::find(std::string* error) {
  const std::optional<Library> library = Library::find_loaded("libcuda.so");
  if (!library) {
    *error =
        "The program has not loaded an NVIDIA driver library (libcuda.so), so there is no GPU work to measure; "
        "if it should use a GPU, check that `nvidia-smi` works and that the program's framework was built for CUDA.";
    return std::nullopt;
  }
  Driver driver(*library);
  const DriverFunctions& f = driver.functions_;
  if (!f.driver_version || !f.device_count || !f.device_get) {
    *error = "The driver library " + driver.path_ +
             " is older than CUDA 12 or is a stub, so GPU work is not measured; "
             "install the driver that belongs to the GPU.";
    return std::nullopt;
  }
  return driver;
}

bool Driver::has_started(std::string* error) const {
  std::int32_t count = 0;
  const cuda::Result result = functions_.device_count(&count);
  if (result == cuda::kSuccess && count > 0) return true;
  if (result == cuda::kNotInitialized) {
    *error =
        "The program has loaded the CUDA driver but not started it, or it could not be started, so there is no GPU "
        "work to measure; if it should use a GPU, check that `nvidia-smi` works for this user and that "
        "CUDA_VISIBLE_DEVICES is not empty.";
  } else if (result == cuda::kSuccess || result == cuda::kNoDevice) {
    *error =
        "The CUDA driver shows no device to this process, so there is no GPU work to measure; check `nvidia-smi` and "
        "CUDA_VISIBLE_DEVICES.";
  } else {
    *error = "The CUDA driver does not work here (" + describe(result) +
             "), so GPU work is not measured; check that `nvidia-smi` works for this user.";
  }
  return false;
}

bool Driver::has_primary_context() const {
  const DriverFunctions& f = functions_;
  std::int32_t count = 0;
  if (!f.primary_context_state || f.device_count(&count) != cuda::kSuccess) return false;
  for (std::int32_t index = 0; index < count; ++index) {
    cuda::Device device = 0;
    std::uint32_t flags = 0;
    std::int32_t active = 0;
    if (f.device_get(&device, index) == cuda::kSuccess &&
        f.primary_context_state(device, &flags, &active) == cuda::kSuccess && active != 0) {
      return true;
    }
  }
  return false;
}

std::int32_t Driver::cuda_version() const noexcept {
  std::int32_t version = 0;
  return functions_.driver_version(&version) == cuda::kSuccess ? version : 0;
}

std::string Driver::describe(cuda::Result result) const {
  const char* text = nullptr;
  if (functions_.error_string && functions_.error_string(result, &text) == cuda::kSuccess && text) return text;
  return "CUDA error " + std::to_string(result);
}

std::vector<gpu::DeviceInfo> Driver::devices() const {
  const DriverFunctions& f = functions_;
  std::int32_t count = 0;
  if (f.device_count(&count) != cuda::kSuccess) return {};
  std::vector<gpu::DeviceInfo> devices;
  for (std::int32_t index = 0; index < count; ++index) {
    cuda::Device handle = 0;
    if (f.device_get(&handle, index) != cuda::kSuccess) continue;
    gpu::DeviceInfo device;
    device.index = index;
    std::array<char, 256> name{};
    if (f.device_name && f.device_name(name.data(), static_cast<std::int32_t>(name.size()), handle) == cuda::kSuccess) {
      device.name = name.data();
    }
    device.partition =
        device.name.find(" MIG ") != std::string::npos;  // the driver names a slice "NVIDIA H100 ... MIG 1g.10gb"
    cuda::Uuid uuid{};
    if (f.device_uuid && f.device_uuid(&uuid, handle) == cuda::kSuccess)
      device.uuid = uuid_text(uuid, device.partition);
    std::size_t bytes = 0;
    if (f.device_memory && f.device_memory(&bytes, handle) == cuda::kSuccess) {
      device.memory_bytes = static_cast<std::int64_t>(bytes);
    }
    const auto attribute = [&](cuda::Attribute which, std::int32_t* value) {
      std::int32_t got = 0;
      if (f.device_attribute && f.device_attribute(&got, which, handle) == cuda::kSuccess) *value = got;
    };
    attribute(cuda::Attribute::kMajor, &device.major);
    attribute(cuda::Attribute::kMinor, &device.minor);
    attribute(cuda::Attribute::kMultiprocessors, &device.multiprocessors);
    attribute(cuda::Attribute::kWarpSize, &device.warp_size);
    attribute(cuda::Attribute::kMaxThreadsPerMultiprocessor, &device.max_threads_per_multiprocessor);
    attribute(cuda::Attribute::kMaxBlocksPerMultiprocessor, &device.max_blocks_per_multiprocessor);
    attribute(cuda::Attribute::kMaxRegistersPerMultiprocessor, &device.registers_per_multiprocessor);
    attribute(cuda::Attribute::kMaxSharedPerMultiprocessor, &device.shared_per_multiprocessor);
    attribute(cuda::Attribute::kReservedSharedPerBlock, &device.reserved_shared_per_block);
    devices.push_back(std::move(device));
  }
  return devices;
}

std::string device_detail_json(const gpu::DeviceInfo& d, bool mps) {
  std::array<char, 512> text{};
  std::snprintf(text.data(), text.size(),
                "{\"compute_capability\": \"%d.%d\", \"multiprocessors\": %d, \"max_threads_per_multiprocessor\": %d, "
                "\"max_blocks_per_multiprocessor\": %d, \"registers_per_multiprocessor\": %d, "
                "\"shared_bytes_per_multiprocessor\": %d, \"mig\": %s, \"mps\": %s}",
                d.major, d.minor, d.multiprocessors, d.max_threads_per_multiprocessor, d.max_blocks_per_multiprocessor,
                d.registers_per_multiprocessor, d.shared_per_multiprocessor, d.partition ? "true" : "false",
                mps ? "true" : "false");
  return text.data();
}

bool mps_in_use() {
  const char* configured = std::getenv("CUDA_MPS_PIPE_DIRECTORY");
  const std::string directory = configured && *configured ? configured : "/tmp/nvidia-mps";
  struct stat info {};
  return ::stat((directory + "/control").c_str(), &info) == 0;
}

}  // namespace leadline::nvidia
