#include "providers/nvidia/cupti_library.h"

#include <algorithm>
#include <array>

namespace leadline::nvidia {
namespace {

constexpr std::string_view kFileName = "libcupti.so";
constexpr std::string_view kRuntimeName = "libcudart";

template <class Function>
void bind(const Library& library, const char* name, Function*& slot) {
  slot = library.symbol<Function>(name);
}

std::string_view file_name(std::string_view path) {
  const auto slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

// 13 in ".../libcupti.so.13" and ".../libcupti.so.13.0.85"; 0 where the name has none.
int major_in(std::string_view path) {
  const std::string_view name = file_name(path);
  const auto at = name.find(".so.");
  if (at == std::string_view::npos) return 0;
  int major = 0;
  for (const char c : name.substr(at + 4)) {
    if (c < '0' || c > '9') break;
    major = major * 10 + (c - '0');
  }
  return major;
}

}  // namespace

CuptiLibrary::CuptiLibrary(const Library& library) : path_(library.path()) {
  CuptiFunctions& f = functions_;
  bind(library, "cuptiGetVersion", f.get_version);
  bind(library, "cuptiGetResultString", f.get_result_string);
  bind(library, "cuptiGetCallbackName", f.get_callback_name);
  bind(library, "cuptiSubscribe", f.subscribe);
  bind(library, "cuptiSubscribe_v2", f.subscribe_v2);
  bind(library, "cuptiUnsubscribe", f.unsubscribe);
  bind(library, "cuptiEnableCallback", f.enable_callback);
  bind(library, "cuptiEnableDomain", f.enable_domain);
  bind(library, "cuptiActivityRegisterCallbacks", f.register_callbacks);
  bind(library, "cuptiActivityRegisterCallbacks_v2", f.register_callbacks_v2);
  bind(library, "cuptiActivityEnable", f.activity_enable);
  bind(library, "cuptiActivityEnable_v2", f.activity_enable_v2);
  bind(library, "cuptiActivityDisable", f.activity_disable);
  bind(library, "cuptiActivityDisable_v2", f.activity_disable_v2);
  bind(library, "cuptiActivityFlushAll", f.flush_all);
  bind(library, "cuptiActivityFlushPeriod", f.flush_period);
  bind(library, "cuptiActivitySetAttribute", f.set_attribute);
  bind(library, "cuptiActivityRegisterTimestampCallback", f.register_timestamp);
  bind(library, "cuptiActivityGetNextRecord", f.next_record);
  bind(library, "cuptiActivityGetNextRecord_v2", f.next_record_v2);
  bind(library, "cuptiActivityGetNumDroppedRecords", f.dropped_records);
  bind(library, "cuptiActivityGetNumDroppedRecords_v2", f.dropped_records_v2);
  bind(library, "cuptiGetTimestamp", f.get_timestamp);
  bind(library, "cuptiGetDeviceId", f.get_device_id);
  bind(library, "cuptiGetStreamIdEx", f.get_stream_id);
  bind(library, "cuptiGetGraphNodeId", f.get_graph_node_id);
  bind(library, "cuptiGetGraphId", f.get_graph_id);
  bind(library, "cuptiFinalize", f.finalize);
  PcSamplingFunctions& s = sampling_;
  bind(library, "cuptiPCSamplingEnable", s.enable);
  bind(library, "cuptiPCSamplingDisable", s.disable);
  bind(library, "cuptiPCSamplingStart", s.start);
  bind(library, "cuptiPCSamplingStop", s.stop);
  bind(library, "cuptiPCSamplingSetConfigurationAttribute", s.configure);
  bind(library, "cuptiPCSamplingGetData", s.get_data);
  bind(library, "cuptiPCSamplingGetNumStallReasons", s.stall_reason_count);
  bind(library, "cuptiPCSamplingGetStallReasons", s.stall_reasons);
  bind(library, "cuptiRegisterComputeCrcCallback", s.register_hash);
  PmSamplingFunctions& c = counting_;
  bind(library, "cuptiProfilerInitialize", c.initialize);
  bind(library, "cuptiDeviceGetChipName", c.chip_name);
  bind(library, "cuptiProfilerHostInitialize", c.host_initialize);
  bind(library, "cuptiProfilerHostDeinitialize", c.host_deinitialize);
  bind(library, "cuptiProfilerHostConfigAddMetrics", c.host_add_metrics);
  bind(library, "cuptiProfilerHostGetConfigImageSize", c.host_image_size);
  bind(library, "cuptiProfilerHostGetConfigImage", c.host_image);
  bind(library, "cuptiProfilerHostGetNumOfPasses", c.host_passes);
  bind(library, "cuptiProfilerHostEvaluateToGpuValues", c.host_evaluate);
  bind(library, "cuptiPmSamplingGetCounterAvailability", c.availability);
  bind(library, "cuptiPmSamplingEnable", c.enable);
  bind(library, "cuptiPmSamplingDisable", c.disable);
  bind(library, "cuptiPmSamplingSetConfig", c.configure);
  bind(library, "cuptiPmSamplingGetCounterDataSize", c.image_size);
  bind(library, "cuptiPmSamplingCounterDataImageInitialize", c.image_initialize);
  bind(library, "cuptiPmSamplingStart", c.start);
  bind(library, "cuptiPmSamplingStop", c.stop);
  bind(library, "cuptiPmSamplingDecodeData", c.decode);
  bind(library, "cuptiPmSamplingGetCounterDataInfo", c.image_info);
  bind(library, "cuptiPmSamplingCounterDataGetSampleInfo", c.sample_info);
  RangeFunctions& r = ranges_;
  bind(library, "cuptiProfilerGetCounterAvailability", r.availability);
  bind(library, "cuptiRangeProfilerEnable", r.enable);
  bind(library, "cuptiRangeProfilerDisable", r.disable);
  bind(library, "cuptiRangeProfilerSetConfig", r.configure);
  bind(library, "cuptiRangeProfilerGetCounterDataSize", r.image_size);
  bind(library, "cuptiRangeProfilerCounterDataImageInitialize", r.image_initialize);
  bind(library, "cuptiRangeProfilerStart", r.start);
  bind(library, "cuptiRangeProfilerStop", r.stop);
  bind(library, "cuptiRangeProfilerDecodeData", r.decode);
  bind(library, "cuptiRangeProfilerGetCounterDataInfo", r.image_info);
  bind(library, "cuptiRangeProfilerCounterDataGetRangeInfo", r.range_info);
}

std::string CuptiLibrary::missing_required() const {
  const CuptiFunctions& f = functions_;
  const std::array<std::pair<const char*, bool>, 11> required{{
      {"cuptiGetVersion", f.get_version != nullptr},
      {"cuptiGetCallbackName", f.get_callback_name != nullptr},
      {"cuptiSubscribe", f.subscribe != nullptr},
      {"cuptiUnsubscribe", f.unsubscribe != nullptr},
      {"cuptiEnableCallback", f.enable_callback != nullptr},
      {"cuptiActivityRegisterCallbacks", f.register_callbacks != nullptr},
      {"cuptiActivityEnable", f.activity_enable != nullptr},
      {"cuptiActivityDisable", f.activity_disable != nullptr},
      {"cuptiActivityFlushAll", f.flush_all != nullptr},
      {"cuptiActivityGetNextRecord", f.next_record != nullptr},
      {"cuptiGetTimestamp", f.get_timestamp != nullptr},
  }};
  for (const auto& [name, present] : required) {
    if (!present) return name;
  }
  return {};
}

std::optional<CuptiLibrary> CuptiLibrary::open(const std::vector<std::string>& candidates, std::string* error) {
  std::optional<Library> library = Library::find_loaded(kFileName);
  if (!library) library = Library::open(candidates, error);
  if (!library) return std::nullopt;
  CuptiLibrary cupti(*library);
  if (const std::string missing = cupti.missing_required(); !missing.empty()) {
    *error = "The library " + cupti.path() + " has no function " + missing +
             ", so GPU work is not measured; install the nvidia-cuda-cupti package that matches the program's CUDA.";
    return std::nullopt;
  }
  return cupti;
}

std::uint32_t CuptiLibrary::version() const noexcept {
  std::uint32_t version = 0;
  return functions_.get_version(&version) == cupti::kSuccess ? version : 0;
}

std::string CuptiLibrary::describe(cupti::Result result) const {
  const char* text = nullptr;
  if (functions_.get_result_string && functions_.get_result_string(result, &text) == cupti::kSuccess && text)
    return text;
  return "CUPTI error " + std::to_string(result);
}

bool CuptiLibrary::has_shared_subscription() const noexcept {
  const CuptiFunctions& f = functions_;
  return version() >= cupti::kVersion13_3 && f.subscribe_v2 && f.register_callbacks_v2 && f.activity_enable_v2 &&
         f.activity_disable_v2 && f.next_record_v2 && f.dropped_records_v2;
}

std::vector<std::string> fitting_candidates(std::vector<std::string> candidates, int runtime, int driver) {
  std::erase_if(candidates, [&](const std::string& path) { return driver > 0 && major_in(path) > driver; });
  std::stable_partition(candidates.begin(), candidates.end(),
                        [&](const std::string& path) { return runtime > 0 && major_in(path) == runtime; });
  return candidates;
}

int loaded_runtime_major() {
  for (const LoadedLibrary& library : loaded_libraries()) {
    if (!file_name(library.path).starts_with(kRuntimeName)) continue;
    if (const int major = major_in(library.path); major > 0) return major;
  }
  return 0;
}

std::vector<std::string> loaded_cupti_copies() {
  std::vector<std::string> copies;
  for (const LoadedLibrary& library : loaded_libraries()) {
    const bool known = std::find(copies.begin(), copies.end(), library.path) != copies.end();
    if (file_name(library.path).starts_with(kFileName) && !known) copies.push_back(library.path);
  }
  return copies;
}

int cupti_major(std::uint32_t version) noexcept {
  if (version >= cupti::kVersion13_0) return static_cast<int>(version / 10000);
  return version >= cupti::kVersion12_0 ? 12 : 0;
}

std::string cupti_version_name(std::uint32_t version) {
  if (version >= cupti::kVersion13_0)
    return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100);
  struct Known {
    std::uint32_t version;
    const char* name;
  };
  constexpr std::array<Known, 5> known{{{28, "12.9"}, {26, "12.8"}, {24, "12.6"}, {22, "12.4"}, {18, "12"}}};
  for (const Known& k : known) {
    if (version >= k.version) return k.name;
  }
  return version == 0 ? "unknown" : "11 or older";
}

}  // namespace leadline::nvidia
