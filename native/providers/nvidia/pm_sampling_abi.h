// CUPTI's interface for readings of hardware counters at fixed intervals (PM sampling), as far as Leadline uses it; the
// same from CUDA 12.6 on.
//
// Own declarations, as those in cupti_abi.h; tests/nvidia/test_pm_sampling_abi.py compiles them against the vendor's
// headers. `size` is that of a structure up to its last field.
#pragma once

#include <cstddef>
#include <cstdint>

#include "providers/nvidia/cupti_abi.h"

namespace leadline::nvidia::cupti {

inline constexpr Result kInvalidChipName = 46;

// Objects of CUPTI's own.
using PmSampling = struct PmSamplingObject*;
using ProfilerHost = struct ProfilerHostObject*;

enum class ProfilerType : std::int32_t { kRanges = 0, kPmSampling = 1 };
enum class TriggerMode : std::int32_t { kClocks = 0, kNanoseconds = 1 };
enum class WhenFull : std::int32_t { kKeepOldest = 0, kKeepLatest = 1 };
enum class DecodeStop : std::int32_t { kOther = 0, kImageFull = 1, kEndOfRecords = 2 };

struct ProfilerInitialize {
  std::size_t size;
  void* reserved;
};
struct ChipName {
  std::size_t size;
  void* reserved;
  std::size_t device;
  const char* name;
};
struct HostInitialize {
  std::size_t size;
  void* reserved;
  ProfilerType type;
  const char* chip;
  const std::uint8_t* available;
  ProfilerHost host;
};
struct HostObject {  // deinitialize
  std::size_t size;
  void* reserved;
  ProfilerHost host;
};
struct HostAddMetrics {
  std::size_t size;
  void* reserved;
  ProfilerHost host;
  const char** names;
  std::size_t count;
};
struct HostImageSize {
  std::size_t size;
  void* reserved;
  ProfilerHost host;
  std::size_t bytes;
};
struct HostImage {
  std::size_t size;
  void* reserved;
  ProfilerHost host;
  std::size_t bytes;
  std::uint8_t* image;
};
struct HostPasses {
  std::size_t size;
  void* reserved;
  std::size_t bytes;
  std::uint8_t* image;
  std::size_t passes;
};
struct HostEvaluate {
  std::size_t size;
  void* reserved;
  ProfilerHost host;
  const std::uint8_t* image;
  std::size_t bytes;
  std::size_t index;
  const char** names;
  std::size_t count;
  double* values;
};
struct PmEnable {
  std::size_t size;
  void* reserved;
  std::size_t device;
  PmSampling sampling;
};
struct PmObject {  // start, stop, disable
  std::size_t size;
  void* reserved;
  PmSampling sampling;
};
struct PmConfigure {
  std::size_t size;
  void* reserved;
  PmSampling sampling;
  std::size_t config_bytes;
  const std::uint8_t* config;
  std::size_t hardware_bytes;
  std::uint64_t interval;
  TriggerMode trigger;
  WhenFull when_full;
};
struct PmAvailability {
  std::size_t size;
  void* reserved;
  std::size_t device;
  std::size_t bytes;
  std::uint8_t* image;
};
struct PmImageSize {
  std::size_t size;
  void* reserved;
  PmSampling sampling;
  const char** names;
  std::size_t count;
  std::uint32_t most;
  std::size_t bytes;
};
struct PmImage {  // initialize
  std::size_t size;
  void* reserved;
  PmSampling sampling;
  std::size_t bytes;
  std::uint8_t* image;
};
struct PmDecode {
  std::size_t size;
  void* reserved;
  PmSampling sampling;
  std::uint8_t* image;
  std::size_t bytes;
  DecodeStop stopped;
  std::uint8_t overflow;
};
struct PmImageInfo {
  std::size_t size;
  void* reserved;
  const std::uint8_t* image;
  std::size_t bytes;
  std::size_t room;
  std::size_t populated;
  std::size_t completed;
};
struct PmSampleInfo {
  std::size_t size;
  void* reserved;
  PmSampling sampling;
  const std::uint8_t* image;
  std::size_t bytes;
  std::size_t index;
  std::uint64_t start;
  std::uint64_t end;
};

// As CUPTI counts them: up to the last field, without what fills up the structure behind it.
inline constexpr std::size_t kPmDecodeBytes = offsetof(PmDecode, overflow) + sizeof(std::uint8_t);

}  // namespace leadline::nvidia::cupti
