// rocprofiler-sdk's binary interface for samples of the program counter, declared by us: what of it Leadline uses.
//
// From rocprofiler-sdk/pc_sampling.h and fwd.h of ROCm/rocm-systems (1.0, ROCm 7); no package that the tests have ships
// the first. Records say their size, which tells the two kinds apart: numbers of kinds moved with 1.0.
#pragma once

#include <cstddef>
#include <cstdint>

#include "providers/amd/rocprofiler_abi.h"

namespace leadline::amd::sdk {

inline constexpr Status kNotImplemented = 17;  // also where the environment does not permit it
inline constexpr Status kIncompatibleKernel = 28;
inline constexpr Status kNotAvailable = 37;
inline constexpr Status kPermissionDenied = 40;

enum class SamplingMethod : std::int32_t { kNone = 0, kStochastic = 1, kHostTrap = 2 };
enum class SamplingUnit : std::int32_t { kNone = 0, kInstructions = 1, kCycles = 2, kTime = 3 };
inline constexpr std::uint64_t kIntervalIsPowerOfTwo = 1;

struct SamplingConfiguration {
  std::uint64_t size;
  SamplingMethod method;
  SamplingUnit unit;
  std::size_t least;
  std::size_t most;
  std::uint64_t flags;  // since 0.6; `size` tells
};
using SamplingConfigurations = Status (*)(const SamplingConfiguration*, std::size_t, void*);

struct SampledPlace {
  std::uint64_t code_object;  // 0: unknown
  std::uint64_t offset;       // from where the code object was loaded to
};
struct HostTrapSample {
  std::uint64_t size;
  std::uint64_t hardware;
  SampledPlace place;
  std::uint64_t lanes;
  std::uint64_t time;
  std::uint64_t dispatch;
  std::uint64_t correlation_internal;
  UserData correlation_external;
  Dim3 workgroup;
  std::uint32_t wave;
};
static_assert(sizeof(HostTrapSample) == 88);
struct StochasticSample {
  std::uint64_t size;
  std::uint8_t flags;
  std::uint8_t wave;
  std::uint8_t issued_and_type;  // lowest bit: the wave issued this instruction
  std::uint64_t hardware;
  SampledPlace place;
  std::uint64_t lanes;
  Dim3 workgroup;
  std::uint32_t waves;
  std::uint64_t time;
  std::uint64_t dispatch;
  std::uint64_t correlation_internal;
  UserData correlation_external;
  std::uint32_t snapshot;  // four bits of a reason, then a bit for each unit that was issued to
  std::uint32_t memory_counters;
};
static_assert(sizeof(StochasticSample) == 104);
inline constexpr std::uint32_t kIssuedToAny = 0x7ffu << 5;

struct CodeObjectLoad {
  std::uint64_t size;
  std::uint64_t code_object;
  std::uint64_t agent;
  std::uint64_t hsa_agent;
  const char* uri;
  std::uint64_t load_base;
  std::uint64_t load_size;
  std::int64_t load_delta;
  std::int32_t storage;
  union {
    std::int32_t file;
    struct {
      std::uint64_t base;
      std::uint64_t bytes;
    } memory;
  };
};
inline constexpr std::int32_t kInMemory = 2;
inline constexpr std::int32_t kCodeObjectLoad = 1;  // operation of code objects, the same in every release

// KernelSymbol with what came to stand behind it.
struct PlacedKernelSymbol {
  KernelSymbol symbol;
  std::int64_t entry_offset;
  std::uint64_t address;
};

}  // namespace leadline::amd::sdk
