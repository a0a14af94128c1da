// What happens at the begin and end of a followed HIP call, when work is handed to a device, and at roctx ranges.
//
// Runs inside the program's calls: nothing here throws, waits, or allocates on the path of a launch.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "gpu/api_calls.h"
#include "gpu/host_memory.h"
#include "providers/amd/call_streams.h"
#include "providers/amd/graphs.h"
#include "providers/amd/rocprofiler_abi.h"
#include "providers/amd/roctracer_abi.h"
#include "providers/amd/roctx_ranges.h"
#include "providers/amd/sdk_names.h"
#include "providers/amd/stream_numbers.h"

namespace leadline::amd {

class Callbacks {
 public:
  Callbacks(const SdkNames& names, StreamNumbers& streams, gpu::HostMemory& host_memory, Graphs& graphs,
            gpu::LaunchTables& tables)
      : names_(names), streams_(streams), host_memory_(host_memory), graphs_(graphs), tables_(tables), calls_(tables) {}

  void hip(std::int32_t operation, sdk::Phase phase, const sdk::HipCall& call) noexcept;
  // A call of RCCL or HSA; those of HIP inside it are the same call to the user.
  void library(const HipCalls& calls, std::int32_t operation, sdk::Phase phase, const sdk::HipCall& call) noexcept;
  void marker(std::int32_t operation, sdk::Phase phase, const sdk::MarkerCall& call) noexcept;
  // The same of roctracer and of the older roctx library.
  void traced_hip(std::uint32_t operation, const tracer::HipCall& call) noexcept;
  void traced_range(std::uint32_t operation, const tracer::RoctxCall& call) noexcept;
  // Which stream each call was on and what memory it copied; before the first call, for records that do not bring it
  // back.
  void keep_streams() { call_streams_ = std::make_unique<CallStreams>(); }
  const CallStreams* call_streams() const noexcept { return call_streams_.get(); }
  // Work is about to be handed to a device by the calling thread: what its record shall bring back.
  std::uint64_t request(std::int32_t kind) noexcept;

  gpu::ApiCalls& calls() noexcept { return calls_; }
  const gpu::ApiCalls& calls() const noexcept { return calls_; }
  // HIP calls that launch kernels, and dispatches and copies that were handed to devices.
  std::uint64_t launches() const noexcept { return launches_.load(std::memory_order_relaxed); }
  std::uint64_t requests() const noexcept { return requests_.load(std::memory_order_relaxed); }

 private:
  void enter(const HipCallKind& kind, const void* arguments, std::uint32_t id, bool makes_work) noexcept;
  void leave(const HipCallKind& kind, const void* arguments, bool failed) noexcept;
  void host_step(const HipCallKind& kind, const void* arguments) noexcept;
  void graph_step(const HipCallKind& kind, const void* arguments) noexcept;
  std::uint32_t next_id() noexcept;

  const SdkNames& names_;
  StreamNumbers& streams_;
  gpu::HostMemory& host_memory_;
  Graphs& graphs_;
  gpu::LaunchTables& tables_;
  gpu::ApiCalls calls_;
  RoctxRanges ranges_;
  std::unique_ptr<CallStreams> call_streams_;
  std::atomic<std::uint64_t> launches_{0};
  std::atomic<std::uint64_t> requests_{0};
};

}  // namespace leadline::amd
