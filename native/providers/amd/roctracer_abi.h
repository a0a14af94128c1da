// The binary interface of roctracer and of the older roctx library, declared by us: what of it Leadline uses where a
// ROCm has no rocprofiler-sdk yet (before 6.2).
//
// From roctracer/roctracer.h, ext/prof_protocol.h, roctracer_roctx.h and hip/amd_detail/hip_prof_str.h, which
// tests/amd/test_roctracer_abi.py compiles the same against as the `triton` wheel ships them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace leadline::amd::tracer {

using Status = std::int32_t;
inline constexpr Status kSuccess = 0;

enum class Domain : std::uint32_t { kHipWork = 2, kHipCalls = 3, kRoctx = 6 };
enum class Operation : std::uint32_t { kDispatch = 0, kCopy = 1, kBarrier = 2 };  // of Domain::kHipWork
enum class Phase : std::uint32_t { kEnter = 0, kExit = 1 };

struct HipCall {
  std::uint64_t correlation;
  Phase phase;
  // A union of structures, each with a function's arguments in their order; behind a pointer stands what it points to.
  alignas(8) std::uint8_t arguments[1];
};

struct Record {
  Domain domain;
  std::uint32_t kind;
  Operation operation;
  std::uint64_t correlation;
  std::uint64_t begin;
  std::uint64_t end;
  std::int32_t device;
  std::uint64_t queue;
  union {
    std::size_t bytes;
    const char* kernel;  // mangled; null in releases before it was added
  };
};

struct Properties {
  std::uint32_t mode;
  std::size_t buffer_bytes;
  void (*allocate)(char** pointer, std::size_t bytes, void* data);
  void* allocate_data;
  void (*full)(const char* begin, const char* end, void* data);
  void* full_data;
};

enum class RoctxOperation : std::uint32_t { kMark = 0, kPush = 1, kPop = 2, kStart = 3, kStop = 4 };
struct RoctxCall {
  const char* message;
  std::uint64_t range;
};

using Pool = void;
using CallCallback = void (*)(std::uint32_t domain, std::uint32_t operation, const void* data, void* user);
using RoctxCallback = int (*)(std::uint32_t domain, std::uint32_t operation, void* data);

}  // namespace leadline::amd::tracer
