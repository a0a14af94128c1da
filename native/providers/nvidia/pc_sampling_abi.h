// CUPTI's interface for samples of the program counter, as far as Leadline uses it, for majors 12 and 13 at once.
//
// Own declarations, as those in cupti_abi.h; tests/nvidia/test_pc_sampling_abi.py compiles them against the vendor's
// headers of both majors. Before 12.4 a record of an instruction ends before the correlation id.
#pragma once

#include <cstddef>
#include <cstdint>

#include "providers/nvidia/cupti_abi.h"

namespace leadline::nvidia::cupti {

inline constexpr Result kInvalidOperation = 7;
inline constexpr Result kOutOfMemory = 8;
inline constexpr Result kHardwareBusy = 26;
inline constexpr Result kLegacyProfilerNotSupported = 38;
inline constexpr Result kConfidentialNotSupported = 41;
inline constexpr Result kCmpNotSupported = 42;
inline constexpr Result kMigNotSupported = 43;
inline constexpr Result kSliNotSupported = 44;
inline constexpr Result kWslNotSupported = 45;

inline constexpr std::size_t kStallNameSize = 128;

enum class SamplingMode : std::int32_t { kContinuous = 1, kSerialised = 2 };

enum class SamplingAttribute : std::int32_t {
  kPeriod = 1,
  kScratchBuffer = 3,
  kHardwareBuffer = 4,
  kMode = 5,
  kStartStop = 6,
  kOutputFormat = 7,
  kDataBuffer = 8,
  kSleepSpan = 9,
};
inline constexpr std::int32_t kOutputParsed = 1;

struct StallCount {
  std::uint32_t reason;
  std::uint32_t samples;
};

struct PcRecord {
  std::size_t size;
  std::uint64_t code;
  std::uint64_t offset;
  std::uint32_t function_index;
  std::uint32_t padding;
  char* function;
  std::size_t stall_count;
  StallCount* stalls;
  std::uint32_t correlation_id;  // from 12.4 on, and in serialised mode
};
inline constexpr std::size_t kPcRecordBytes12_0 = 56;

struct SamplingData {
  std::size_t size;
  std::size_t room;  // records that there is memory for
  std::uint64_t total_samples;
  std::uint64_t dropped_samples;
  std::size_t records;
  std::size_t remaining;
  std::uint64_t range;
  void* pcs;
  std::uint64_t other_samples;  // of kernels that are not the program's
  std::uint8_t hardware_buffer_full;
};

struct SamplingSetting {
  SamplingAttribute attribute;
  Result status;
  union {
    std::uint64_t any[3];
    std::uint32_t number;
    std::size_t size;
    std::int32_t choice;
    void* buffer;
  } value;
};

// The arguments of calls; `size` is that of the structure up to its last field.
struct SamplingSettings {
  std::size_t size;
  void* reserved;
  void* context;
  std::size_t count;
  SamplingSetting* settings;
};
struct SamplingOfContext {  // enable, disable, start, stop
  std::size_t size;
  void* reserved;
  void* context;
};
struct SamplingGetData {
  std::size_t size;
  void* reserved;
  void* context;
  SamplingData* data;
};
struct StallReasonCount {
  std::size_t size;
  void* reserved;
  void* context;
  std::size_t* count;
};
struct StallReasons {
  std::size_t size;
  void* reserved;
  void* context;
  std::size_t count;
  std::uint32_t* indices;
  char** names;
};

using HashCode = void (*)(const void* image, std::size_t bytes, std::uint64_t* hash);

}  // namespace leadline::nvidia::cupti
