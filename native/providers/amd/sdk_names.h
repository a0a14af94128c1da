// The SDK's numbers of what Leadline asks it for, by name: they differ between its releases.
#pragma once

#include <cstdint>
#include <string>

#include "providers/amd/hip_calls.h"
#include "providers/amd/sdk_library.h"

namespace leadline::amd {

inline constexpr std::int32_t kNoNumber = -1;  // this release has none

struct MarkerOperations {
  std::int32_t mark = kNoNumber;
  std::int32_t push = kNoNumber;
  std::int32_t pop = kNoNumber;
  std::int32_t start = kNoNumber;
  std::int32_t stop = kNoNumber;
};

struct SdkNames {
  // Kinds of callbacks.
  std::int32_t hip = kNoNumber;
  std::int32_t code_object = kNoNumber;
  std::int32_t marker = kNoNumber;
  std::int32_t stream = kNoNumber;
  std::int32_t rccl = kNoNumber;
  std::int32_t hsa = kNoNumber;      // its functions
  std::int32_t hsa_amd = kNoNumber;  // and those that are AMD's own
  // Kinds of records.
  std::int32_t dispatch = kNoNumber;
  std::int32_t copy = kNoNumber;
  std::int32_t scratch = kNoNumber;
  // Kinds of requests for a correlation id.
  std::int32_t dispatch_request = kNoNumber;
  std::int32_t copy_request = kNoNumber;
  MarkerOperations markers;
  HipCalls calls;
  HipCalls rccl_calls;
  HipCalls hsa_calls;
  HipCalls hsa_amd_calls;

  // False, with a name in *missing, where the SDK does not name what is needed.
  bool load(const SdkFunctions& sdk, std::string* missing);
};

// The same in every release so far: operations of code objects and of streams.
inline constexpr std::int32_t kKernelSymbol = 2;
inline constexpr std::int32_t kStreamCreate = 1;

}  // namespace leadline::amd
