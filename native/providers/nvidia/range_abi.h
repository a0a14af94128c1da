// CUPTI's binary interface for counters of ranges, here of single kernels that CUPTI replays until all passes are done,
// declared by us: what of it Leadline uses, in its own words.
//
// From cupti_range_profiler.h and cupti_profiler_target.h; tests/nvidia/test_range_abi.py compiles the same against the
// vendor's headers. `size` is that of a structure up to its last field.
#pragma once

#include <cstddef>
#include <cstdint>

#include "providers/nvidia/cupti_abi.h"

namespace leadline::nvidia::cupti {

using RangeProfiler = struct RangeProfilerObject*;

enum class RangeKind : std::int32_t { kEachKernel = 1, kByHand = 2 };
enum class Replay : std::int32_t { kApplication = 1, kKernel = 2, kByHand = 3 };

struct ContextAvailability {
  std::size_t size;
  void* reserved;
  void* context;
  std::size_t bytes;
  std::uint8_t* image;
};
struct RangeEnable {
  std::size_t size;
  void* reserved;
  void* context;
  RangeProfiler profiler;
};
struct RangeObject {  // start, disable
  std::size_t size;
  void* reserved;
  RangeProfiler profiler;
};
struct RangeConfigure {
  std::size_t size;
  void* reserved;
  RangeProfiler profiler;
  std::size_t config_bytes;
  const std::uint8_t* config;
  std::size_t bytes;
  std::uint8_t* image;
  RangeKind range;
  Replay replay;
  std::size_t most;
  std::uint16_t levels;
  std::uint16_t least_level;
  std::size_t pass;
  std::uint16_t target_level;
};
struct RangeStop {
  std::size_t size;
  void* reserved;
  RangeProfiler profiler;
  std::size_t pass;
  std::size_t target_level;
  std::uint8_t complete;
};
struct RangeDecode {
  std::size_t size;
  void* reserved;
  RangeProfiler profiler;
  std::size_t dropped;
};
struct RangeImageSize {
  std::size_t size;
  void* reserved;
  RangeProfiler profiler;
  const char** names;
  std::size_t count;
  std::size_t most;
  std::uint32_t nodes;
  std::size_t bytes;
};
struct RangeImage {  // initialize
  std::size_t size;
  void* reserved;
  RangeProfiler profiler;
  std::size_t bytes;
  std::uint8_t* image;
};
struct RangeImageInfo {
  std::size_t size;
  void* reserved;
  const std::uint8_t* image;
  std::size_t bytes;
  std::size_t ranges;
};
struct RangeInfo {
  std::size_t size;
  void* reserved;
  const std::uint8_t* image;
  std::size_t bytes;
  std::size_t index;
  const char* delimiter;
  const char* name;
};

// As CUPTI counts them: up to the last field, without what fills up the structure behind it.
inline constexpr std::size_t kRangeConfigureBytes = offsetof(RangeConfigure, target_level) + sizeof(std::uint16_t);
inline constexpr std::size_t kRangeStopBytes = offsetof(RangeStop, complete) + sizeof(std::uint8_t);

}  // namespace leadline::nvidia::cupti
