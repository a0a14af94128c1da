// The CUDA driver library, opened only where the program has opened it already: Leadline never starts CUDA by itself.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/library.h"
#include "gpu/device.h"
#include "providers/nvidia/cuda_abi.h"

namespace leadline::nvidia {

struct DriverFunctions {
  cuda::Result (*driver_version)(std::int32_t*) = nullptr;
  cuda::Result (*device_count)(std::int32_t*) = nullptr;
  cuda::Result (*device_get)(cuda::Device*, std::int32_t) = nullptr;
  cuda::Result (*device_name)(char*, std::int32_t, cuda::Device) = nullptr;
  cuda::Result (*device_attribute)(std::int32_t*, cuda::Attribute, cuda::Device) = nullptr;
  cuda::Result (*device_memory)(std::size_t*, cuda::Device) = nullptr;
  cuda::Result (*device_uuid)(cuda::Uuid*, cuda::Device) = nullptr;
  cuda::Result (*context_current)(cuda::Context*) = nullptr;
  cuda::Result (*context_device)(cuda::Device*) = nullptr;
  cuda::Result (*context_set_current)(cuda::Context) = nullptr;
  cuda::Result (*context_synchronize)() = nullptr;
  cuda::Result (*primary_context_state)(cuda::Device, std::uint32_t*, std::int32_t*) = nullptr;
  cuda::Result (*error_string)(cuda::Result, const char**) = nullptr;
  cuda::Result (*event_create)(cuda::Event*, std::uint32_t) = nullptr;
  cuda::Result (*event_destroy)(cuda::Event) = nullptr;
  cuda::Result (*event_record)(cuda::Event, cuda::Stream) = nullptr;
  cuda::Result (*event_query)(cuda::Event) = nullptr;
  cuda::Result (*event_elapsed)(float*, cuda::Event, cuda::Event) = nullptr;
  cuda::Result (*stream_is_capturing)(cuda::Stream, std::int32_t*) = nullptr;
  cuda::Result (*exchange_capture_mode)(std::int32_t*) = nullptr;
};

class Driver {
 public:
  // The driver the program has loaded; nullopt with one sentence in *error where it has none or it is too old.
  static std::optional<Driver> find(std::string* error);

  // Whether the program has started CUDA and has a device: false with one sentence in *error. Starts nothing.
  bool has_started(std::string* error) const;

  // Whether the program has made a context that every part of it shares, as all but a few do. Makes none.
  bool has_primary_context() const;

  const DriverFunctions& call() const noexcept { return functions_; }
  const std::string& path() const noexcept { return path_; }
  // CUDA version the driver supports, as 13000 for 13.0; 0 when it does not answer.
  std::int32_t cuda_version() const noexcept;
  std::string describe(cuda::Result result) const;
  // All devices the program may see, in its own numbering.
  std::vector<gpu::DeviceInfo> devices() const;

 private:
  explicit Driver(const Library& library);
  DriverFunctions functions_;
  std::string path_;
};

// JSON object for the devices table: compute capability, multiprocessors, limits, MIG, and whether MPS serves the
// process.
std::string device_detail_json(const gpu::DeviceInfo& device, bool mps);
// Whether a control daemon of the multi-process service is set up for this process (its pipe directory exists).
bool mps_in_use();

}  // namespace leadline::nvidia
