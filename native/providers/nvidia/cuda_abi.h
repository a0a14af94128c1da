// The CUDA driver's binary interface, as far as Leadline uses it; values are those of cuda.h and never change.
#pragma once

#include <cstddef>
#include <cstdint>

namespace leadline::nvidia::cuda {

using Result = std::int32_t;
inline constexpr Result kSuccess = 0;
inline constexpr Result kNotInitialized = 3;
inline constexpr Result kDeinitialized = 4;
inline constexpr Result kNoDevice = 100;
inline constexpr Result kNotReady = 600;

using Device = std::int32_t;
using Context = struct ContextTag*;
using Stream = struct StreamTag*;
using Event = struct EventTag*;

struct Uuid {
  unsigned char bytes[16];
};

enum class Attribute : std::int32_t {
  kMaxThreadsPerBlock = 1,
  kMaxSharedPerBlock = 8,
  kWarpSize = 10,
  kMultiprocessors = 16,
  kPciBus = 33,
  kPciDevice = 34,
  kMaxThreadsPerMultiprocessor = 39,
  kMajor = 75,
  kMinor = 76,
  kMaxSharedPerMultiprocessor = 81,
  kMaxRegistersPerMultiprocessor = 82,
  kMaxBlocksPerMultiprocessor = 106,
  kReservedSharedPerBlock = 111,
};

inline constexpr std::uint32_t kEventDefault = 0;
inline constexpr std::int32_t kCaptureStatusNone = 0;
inline constexpr std::int32_t kCaptureModeRelaxed = 2;
inline constexpr std::uint32_t kGraphNodeKernel = 0;

}  // namespace leadline::nvidia::cuda
