#include "providers/amd/sdk_names.h"

#include <string_view>

namespace leadline::amd {
namespace {

// Some releases answer "KERNEL_DISPATCH", some the whole name of the constant.
bool is_named(const char* answer, std::string_view wanted) {
  std::string_view name = answer;
  for (const std::string_view prefix :
       {"ROCPROFILER_CALLBACK_TRACING_", "ROCPROFILER_BUFFER_TRACING_", "ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_"}) {
    if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
  }
  return name == wanted;
}

template <class Ask>
std::int32_t number_of(Ask ask, std::string_view wanted) {
  constexpr std::int32_t kMost = 128;  // ROCm 7 has some 35; releases leave some out
  if (!ask) return kNoNumber;
  for (std::int32_t kind = 1; kind < kMost; ++kind) {
    const char* name = nullptr;
    std::uint64_t length = 0;
    if (ask(kind, &name, &length) != sdk::kSuccess || !name) continue;
    if (is_named(name, wanted)) return kind;
  }
  return kNoNumber;
}

// Calls each(operation, name) for the operations of a kind of callback.
template <class Each>
void for_operations(const SdkFunctions& sdk, std::int32_t kind, const Each& each) {
  struct Context {
    const SdkFunctions& sdk;
    const Each& each;
  } context{sdk, each};
  sdk.callback_operations(
      kind,
      [](std::int32_t of, std::int32_t operation, void* data) {
        const auto& c = *static_cast<const Context*>(data);
        const char* name = nullptr;
        if (c.sdk.callback_operation_name(of, operation, &name, nullptr) == sdk::kSuccess && name)
          c.each(operation, std::string_view(name));
        return 0;
      },
      &context);
}

}  // namespace

bool SdkNames::load(const SdkFunctions& sdk, std::string* missing) {
  hip = number_of(sdk.callback_kind_name, "HIP_RUNTIME_API");
  code_object = number_of(sdk.callback_kind_name, "CODE_OBJECT");
  marker = number_of(sdk.callback_kind_name, "MARKER_CORE_API");
  stream = number_of(sdk.callback_kind_name, "HIP_STREAM");
  dispatch = number_of(sdk.buffer_kind_name, "KERNEL_DISPATCH");
  copy = number_of(sdk.buffer_kind_name, "MEMORY_COPY");
  scratch = number_of(sdk.buffer_kind_name, "SCRATCH_MEMORY");
  dispatch_request = number_of(sdk.request_kind_name, "KERNEL_DISPATCH");
  copy_request = number_of(sdk.request_kind_name, "MEMORY_COPY");
  // Releases without names for them have these, of the same meaning in all: rocprofiler-sdk/external_correlation.h.
  if (!sdk.request_kind_name) {
    copy_request = 10;
    dispatch_request = 11;
  }
  if (hip > sdk::kHighestPhase)
    for_operations(sdk, hip, [&](std::int32_t operation, std::string_view name) { calls.add(operation, name); });
  const auto add_calls = [&](const char* kind_name, Interface interface, std::int32_t* kind, HipCalls* to) {
    *kind = number_of(sdk.callback_kind_name, kind_name);
    if (*kind == kNoNumber) return;
    for_operations(sdk, *kind,
                   [&](std::int32_t operation, std::string_view name) { to->add(operation, name, interface); });
  };
  add_calls("RCCL_API", Interface::kRccl, &rccl, &rccl_calls);
  add_calls("HSA_CORE_API", Interface::kHsa, &hsa, &hsa_calls);
  add_calls("HSA_AMD_EXT_API", Interface::kHsa, &hsa_amd, &hsa_amd_calls);
  if (marker > sdk::kHighestPhase) {
    for_operations(sdk, marker, [&](std::int32_t operation, std::string_view name) {
      if (name == "roctxMarkA") markers.mark = operation;
      if (name == "roctxRangePushA") markers.push = operation;
      if (name == "roctxRangePop") markers.pop = operation;
      if (name == "roctxRangeStartA") markers.start = operation;
      if (name == "roctxRangeStop") markers.stop = operation;
    });
  }
  const char* without = hip <= sdk::kHighestPhase || calls.followed().empty() ? "HIP_RUNTIME_API"
                        : code_object <= sdk::kHighestPhase                   ? "CODE_OBJECT"
                        : dispatch == kNoNumber                               ? "KERNEL_DISPATCH"
                        : dispatch_request == kNoNumber                       ? "KERNEL_DISPATCH (correlation request)"
                                                                              : nullptr;
  if (without) *missing = without;
  return without == nullptr;
}

}  // namespace leadline::amd
