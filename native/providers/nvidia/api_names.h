// Which driver and runtime calls are followed, and where their arguments stand; decided by name, so that a call added
// in a later CUDA ("cuLaunchKernelEx_v2") is followed on the day it ships, and getters and queries never cost anything.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/call_arguments.h"
#include "leadline/monitor.h"
#include "providers/nvidia/cupti_library.h"

namespace leadline::nvidia {

using gpu::ArgumentLayout;

struct ApiCall {
  std::string name;  // as in the manual: no "_v7000", "_ptsz" or "_ptds"; the driver's "_v2" is kept
  leadline_gpu_kind kind = LEADLINE_GPU_OTHER;
  ArgumentLayout arguments;
  bool makes_work = false;         // activity records with its correlation id will come
  bool per_thread_stream = false;  // stream 0 means the thread's own default stream
  bool followed = false;
};

// The name without the suffixes of one ABI.
std::string_view plain_name(std::string_view name) noexcept;
// What is known of one function of the driver or runtime API, by its full name.
ApiCall classify(std::string_view name);

// All calls of a library, by domain and callback id.
class ApiTable {
 public:
  // Asks the library for the names of its callbacks.
  void load(const CuptiFunctions& cupti);
  const ApiCall* find(cupti::Domain domain, std::uint32_t cbid) const noexcept;
  const std::vector<ApiCall>& calls(cupti::Domain domain) const noexcept;
  std::size_t followed() const noexcept;

 private:
  std::vector<ApiCall> driver_;
  std::vector<ApiCall> runtime_;
};

}  // namespace leadline::nvidia
