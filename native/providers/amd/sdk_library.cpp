#include "providers/amd/sdk_library.h"

#include <dlfcn.h>

#include <algorithm>
#include <string_view>

namespace leadline::amd {
namespace {

constexpr std::string_view kFileName = "librocprofiler-sdk.so";
constexpr std::string_view kHip = "libamdhip64.so";

std::string_view file_name(std::string_view path) {
  const auto slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

// Binds a function, and remembers the first that is missing though Leadline cannot do without it.
class Binder {
 public:
  explicit Binder(const Library& library) : library_(library) {}
  template <class Function>
  void need(const char* name, Function*& slot) {
    may(name, slot);
    if (!slot && missing.empty()) missing = name;
  }
  template <class Function>
  void may(const char* name, Function*& slot) {
    slot = library_.symbol<Function>(name);
  }
  std::string missing;

 private:
  const Library& library_;
};

std::string bind(const Library& library, SdkFunctions& f) {
  Binder b(library);
  b.need("rocprofiler_get_version", f.get_version);
  b.may("rocprofiler_get_status_string", f.get_status_string);
  b.need("rocprofiler_get_timestamp", f.get_timestamp);
  b.need("rocprofiler_is_initialized", f.is_initialized);
  b.may("rocprofiler_is_finalized", f.is_finalized);
  b.need("rocprofiler_force_configure", f.force_configure);
  b.need("rocprofiler_create_context", f.create_context);
  b.need("rocprofiler_start_context", f.start_context);
  b.need("rocprofiler_stop_context", f.stop_context);
  b.need("rocprofiler_create_buffer", f.create_buffer);
  b.need("rocprofiler_flush_buffer", f.flush_buffer);
  b.may("rocprofiler_create_callback_thread", f.create_thread);
  b.may("rocprofiler_assign_callback_thread", f.assign_thread);
  b.need("rocprofiler_configure_callback_tracing_service", f.trace_callbacks);
  b.need("rocprofiler_configure_buffer_tracing_service", f.trace_buffer);
  b.need("rocprofiler_configure_external_correlation_id_request_service", f.request_correlation);
  b.may("rocprofiler_query_external_correlation_id_request_kind_name", f.request_kind_name);
  b.need("rocprofiler_query_callback_tracing_kind_name", f.callback_kind_name);
  b.need("rocprofiler_query_buffer_tracing_kind_name", f.buffer_kind_name);
  b.need("rocprofiler_query_callback_tracing_kind_operation_name", f.callback_operation_name);
  b.need("rocprofiler_iterate_callback_tracing_kind_operations", f.callback_operations);
  b.need("rocprofiler_query_available_agents", f.agents);
  b.may("rocprofiler_query_pc_sampling_agent_configurations", f.sampling_configurations);
  b.may("rocprofiler_configure_pc_sampling_service", f.configure_sampling);
  b.may("rocprofiler_iterate_agent_supported_counters", f.counters_of);
  b.may("rocprofiler_query_counter_info", f.counter_info);
  b.may("rocprofiler_query_record_counter_id", f.counter_of_instance);
  b.may("rocprofiler_create_counter_config", f.create_config);
  if (!f.create_config) b.may("rocprofiler_create_profile_config", f.create_config);  // before 1.0
  b.may("rocprofiler_destroy_counter_config", f.destroy_config);
  if (!f.destroy_config) b.may("rocprofiler_destroy_profile_config", f.destroy_config);
  b.may("rocprofiler_configure_buffered_dispatch_counting_service", f.count_dispatches);
  return b.missing;
}

}  // namespace

SdkLibrary::SdkLibrary(const Library& library) : path_(library.path()) {}

std::optional<SdkLibrary> SdkLibrary::open(const std::vector<std::string>& candidates, std::string* error) {
  std::optional<Library> library = Library::find_loaded(kFileName);
  if (!library) library = Library::open(candidates, error);
  if (!library) return std::nullopt;
  SdkLibrary found(*library);
  if (const std::string missing = bind(*library, found.functions_); !missing.empty()) {
    *error = "the library " + found.path() + " has no function " + missing + ", so it is older than ROCm 6.2";
    return std::nullopt;
  }
  return found;
}

std::uint32_t SdkLibrary::version() const noexcept {
  std::uint32_t major = 0, minor = 0, patch = 0;
  if (functions_.get_version(&major, &minor, &patch) != sdk::kSuccess) return 0;
  return major * 10000 + minor * 100 + patch;
}

std::string SdkLibrary::describe(sdk::Status status) const {
  const char* text = functions_.get_status_string ? functions_.get_status_string(status) : nullptr;
  return text ? text : "status " + std::to_string(status);
}

std::vector<std::string> loaded_sdk_copies() {
  std::vector<std::string> copies;
  for (const LoadedLibrary& library : loaded_libraries()) {
    const bool known = std::find(copies.begin(), copies.end(), library.path) != copies.end();
    if (file_name(library.path).starts_with(kFileName) && !known) copies.push_back(library.path);
  }
  return copies;
}

bool hip_is_loaded() {
  const std::vector<LoadedLibrary> all = loaded_libraries();
  return std::any_of(all.begin(), all.end(),
                     [](const LoadedLibrary& l) { return file_name(l.path).starts_with(kHip); });
}

std::string sdk_version_name(std::uint32_t version) {
  if (version == 0) return "unknown";
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

}  // namespace leadline::amd
