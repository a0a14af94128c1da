// What a fake GPU is before a test or a program sets anything, and what the environment says of it.
#include <cstdlib>

#include "testing/nvidia/fake_gpu.h"

namespace leadline::testing {

void FakeGpu::read_environment() {
  const std::lock_guard lock(mutex);
  if (const char* name = std::getenv("FAKE_HOLDER")) holder = name;
  if (const char* result = std::getenv("FAKE_REFUSES"))
    subscribe_result = static_cast<cupti::Result>(std::atoi(result));
  if (const char* result = std::getenv("FAKE_REFUSES_SAMPLING")) {
    sampling.enable_result = counting.enable_result = static_cast<cupti::Result>(std::atoi(result));
  }
  if (const char* version = std::getenv("FAKE_DRIVER_CUDA")) driver_cuda_version = std::atoi(version);
  if (const char* result = std::getenv("FAKE_INIT")) init_result = static_cast<cuda::Result>(std::atoi(result));
  waits_asleep = std::getenv("FAKE_SLEEPS") != nullptr;
  // As the driver does: an empty list hides every device.
  if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES"); visible && *visible == '\0') {
    init_result = cuda::kNoDevice;
    devices.clear();
  }
}

void FakeGpu::reset() {
  const std::lock_guard lock(mutex);
  cupti_version = 130001;
  driver_cuda_version = 13000;
  init_result = cuda::kSuccess;
  started.store(std::getenv("FAKE_CUDA_NOT_STARTED") == nullptr);
  contexts_.clear();
  holder.clear();
  holder_shares = false;
  subscribe_result = activity_result = cupti::kSuccess;
  subscribed_when_counting_ended = false;
  costs.clear();
  unanswered.clear();
  flushes_by_itself = false;  // a test asks for it: a child that is forked while it flushes has its lock
  flush_period_ms = 0;
  inner_ids_differ = false;
  tells_inner_calls = true;
  callbacks_told = 0;
  real_clock = waits_asleep = false;
  waiting_ran_ns = 0;
  names_work = true;
  delivery = {};
  clock_jump_ns = 0;
  timestamp = nullptr;
  buffers.reset();
  keeps_truth = false;
  truth.clear();
  sampling.reset();
  counting.reset();
  subscribed = nullptr;
  callback = nullptr;
  enabled.clear();
  kinds.clear();
  requested = nullptr;
  completed = nullptr;
  requested_v2 = nullptr;
  completed_v2 = nullptr;
  dropped = 0;
  finalized = 0;
  finalized_inside_call = false;
  calls_after_finalize = 0;
  noisy_callbacks_enabled = 0;
  records_.clear();
  streams_.clear();
  events_.clear();
  now_ns.store(1'000'000);
  next_correlation_.store(1);
  next_graph_ = 1;
  FakeDevice device;
  using A = cuda::Attribute;
  device.attributes = {{A::kMajor, 9},
                       {A::kMinor, 0},
                       {A::kMultiprocessors, 132},
                       {A::kWarpSize, 32},
                       {A::kMaxThreadsPerMultiprocessor, 2048},
                       {A::kMaxBlocksPerMultiprocessor, 32},
                       {A::kMaxRegistersPerMultiprocessor, 65536},
                       {A::kMaxSharedPerMultiprocessor, 233472},
                       {A::kReservedSharedPerBlock, 1024},
                       // Asked by programs, not by Leadline: registers per block, clocks, bus width, shared per block.
                       {A{12}, 65536},
                       {A{13}, 1980000},
                       {A{36}, 3201000},
                       {A{37}, 6144},
                       {A{97}, 232448}};
  devices.assign(1, device);
}

}  // namespace leadline::testing
