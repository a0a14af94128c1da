// rocprofiler-sdk found and opened at run time: the copy the program already uses, else the ROCm installation's or a
// wheel's.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/library.h"
#include "providers/amd/counters_abi.h"
#include "providers/amd/pc_sampling_abi.h"
#include "providers/amd/rocprofiler_abi.h"

namespace leadline::amd {

// Functions are null where this release has none; open() answers none of those that Leadline cannot do without.
struct SdkFunctions {
  sdk::Status (*get_version)(std::uint32_t*, std::uint32_t*, std::uint32_t*) = nullptr;
  const char* (*get_status_string)(sdk::Status) = nullptr;
  sdk::Status (*get_timestamp)(std::uint64_t*) = nullptr;
  sdk::Status (*is_initialized)(int*) = nullptr;
  sdk::Status (*is_finalized)(int*) = nullptr;
  sdk::Status (*force_configure)(sdk::Configure) = nullptr;
  sdk::Status (*create_context)(sdk::ContextId*) = nullptr;
  sdk::Status (*start_context)(sdk::ContextId) = nullptr;
  sdk::Status (*stop_context)(sdk::ContextId) = nullptr;
  sdk::Status (*create_buffer)(sdk::ContextId, std::size_t, std::size_t, sdk::BufferPolicy, sdk::BufferCallback, void*,
                               sdk::BufferId*) = nullptr;
  sdk::Status (*flush_buffer)(sdk::BufferId) = nullptr;
  sdk::Status (*create_thread)(sdk::CallbackThread*) = nullptr;
  sdk::Status (*assign_thread)(sdk::BufferId, sdk::CallbackThread) = nullptr;
  sdk::Status (*trace_callbacks)(sdk::ContextId, std::int32_t, const std::int32_t*, std::size_t, sdk::ApiCallback,
                                 void*) = nullptr;
  sdk::Status (*trace_buffer)(sdk::ContextId, std::int32_t, const std::int32_t*, std::size_t, sdk::BufferId) = nullptr;
  sdk::Status (*request_correlation)(sdk::ContextId, const std::int32_t*, std::size_t, sdk::CorrelationRequest,
                                     void*) = nullptr;
  sdk::Status (*request_kind_name)(std::int32_t, const char**, std::uint64_t*) = nullptr;
  sdk::Status (*callback_kind_name)(std::int32_t, const char**, std::uint64_t*) = nullptr;
  sdk::Status (*buffer_kind_name)(std::int32_t, const char**, std::uint64_t*) = nullptr;
  sdk::Status (*callback_operation_name)(std::int32_t, std::int32_t, const char**, std::uint64_t*) = nullptr;
  sdk::Status (*callback_operations)(std::int32_t, sdk::OperationCallback, void*) = nullptr;
  // Samples of the program counter; experimental in every release.
  sdk::Status (*sampling_configurations)(std::uint64_t agent, sdk::SamplingConfigurations, void*) = nullptr;
  sdk::Status (*configure_sampling)(sdk::ContextId, std::uint64_t agent, sdk::SamplingMethod, sdk::SamplingUnit,
                                    std::uint64_t interval, sdk::BufferId, int flags) = nullptr;
  // Counters of dispatches; experimental in every release.
  sdk::Status (*counters_of)(std::uint64_t agent, sdk::CountersCallback, void*) = nullptr;
  sdk::Status (*counter_info)(sdk::CounterId, std::int32_t version, void* info) = nullptr;
  sdk::Status (*counter_of_instance)(std::uint64_t instance, sdk::CounterId*) = nullptr;
  sdk::Status (*create_config)(std::uint64_t agent, sdk::CounterId*, std::size_t, sdk::CounterConfig*) = nullptr;
  sdk::Status (*destroy_config)(sdk::CounterConfig) = nullptr;
  sdk::Status (*count_dispatches)(sdk::ContextId, sdk::BufferId, sdk::DispatchCallback, void*) = nullptr;
  sdk::Status (*agents)(std::int32_t, sdk::AgentsCallback, std::size_t, void*) = nullptr;
};

class SdkLibrary {
 public:
  // `candidates`: paths to try where the program has no copy loaded, best first. On failure *error is one sentence.
  static std::optional<SdkLibrary> open(const std::vector<std::string>& candidates, std::string* error);

  const SdkFunctions& call() const noexcept { return functions_; }
  const std::string& path() const noexcept { return path_; }
  // 10000 for 1.0.0; 0 when it does not answer.
  std::uint32_t version() const noexcept;
  // In the SDK's words, for messages.
  std::string describe(sdk::Status status) const;

 private:
  explicit SdkLibrary(const Library& library);
  SdkFunctions functions_;
  std::string path_;
};

// Paths of all copies of the SDK in this process; more than one do not see each other's tools.
std::vector<std::string> loaded_sdk_copies();
// Whether the program has loaded HIP.
bool hip_is_loaded();
// "1.0.0"
std::string sdk_version_name(std::uint32_t version);

}  // namespace leadline::amd
