// Which calls of the HIP runtime, of RCCL and of HSA are followed, and where their arguments stand; decided by name, so
// that a call added in a later ROCm is followed on the day it ships, and getters and queries never cost anything.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/call_arguments.h"
#include "leadline/monitor.h"

namespace leadline::amd {

// What a call does to graphs, beside its kind; kSetDevice is no event, but tells which device the thread is on.
enum class Step : std::uint8_t {
  kNone,
  kBeginCapture,
  kEndCapture,
  kInstantiate,
  kLaunch,
  kDestroy,
  kDestroyExec,
  kSetDevice,
  kHostTaken,  // memory of the host was locked for devices: made so, or made such
  kHostLocked,
  kHostGivenBack
};

struct HipCallKind {
  std::string name;  // as in the manual, without "_spt"
  leadline_gpu_kind kind = LEADLINE_GPU_OTHER;
  gpu::ArgumentLayout arguments;
  Step step = Step::kNone;
  bool followed = false;
};

// Whose structures hold the arguments.
enum class Interface : std::uint8_t {
  kSdk,     // rocprofiler-sdk/hip/api_args.h
  kRccl,    // rocprofiler-sdk/rccl/api_args.h
  kHsa,     // rocprofiler-sdk/hsa/api_args.h, of which no argument is read
  kTracer,  // hip/amd_detail/hip_prof_str.h
};

HipCallKind classify(std::string_view name, Interface interface = Interface::kSdk);

// All calls by the SDK's number of their operation.
class HipCalls {
 public:
  void add(std::int32_t operation, std::string_view name, Interface interface = Interface::kSdk);
  const HipCallKind* find(std::int32_t operation) const noexcept {
    const auto at = static_cast<std::size_t>(operation);
    return at < calls_.size() && calls_[at].followed ? &calls_[at] : nullptr;
  }
  // Numbers of those that are followed.
  const std::vector<std::int32_t>& followed() const noexcept { return followed_; }

 private:
  std::vector<HipCallKind> calls_;
  std::vector<std::int32_t> followed_;
};

}  // namespace leadline::amd
