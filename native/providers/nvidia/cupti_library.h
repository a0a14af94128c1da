// CUPTI found and opened at run time: the copy the program already uses, else the wheel's, else the toolkit's.
//
// Opening calls nothing in CUPTI: from 13.2 on it may crash where no driver is present, so callers check the driver
// first.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/library.h"
#include "providers/nvidia/cupti_abi.h"
#include "providers/nvidia/pc_sampling_abi.h"
#include "providers/nvidia/pm_sampling_abi.h"
#include "providers/nvidia/range_abi.h"

namespace leadline::nvidia {

// Functions are null where this version has none; missing_required() names what Leadline cannot do without.
struct CuptiFunctions {
  cupti::Result (*get_version)(std::uint32_t*) = nullptr;
  cupti::Result (*get_result_string)(cupti::Result, const char**) = nullptr;
  cupti::Result (*get_callback_name)(cupti::Domain, std::uint32_t, const char**) = nullptr;
  cupti::Result (*subscribe)(cupti::Subscriber*, cupti::CallbackFunction, void*) = nullptr;
  cupti::Result (*subscribe_v2)(cupti::Subscriber*, cupti::CallbackFunction, void*, cupti::SubscriberParams*) = nullptr;
  cupti::Result (*unsubscribe)(cupti::Subscriber) = nullptr;
  cupti::Result (*enable_callback)(std::uint32_t, cupti::Subscriber, cupti::Domain, std::uint32_t) = nullptr;
  cupti::Result (*enable_domain)(std::uint32_t, cupti::Subscriber, cupti::Domain) = nullptr;
  cupti::Result (*register_callbacks)(cupti::BufferRequested, cupti::BufferCompleted) = nullptr;
  cupti::Result (*register_callbacks_v2)(cupti::Subscriber, cupti::BufferRequestedV2,
                                         cupti::BufferCompletedV2) = nullptr;
  cupti::Result (*activity_enable)(cupti::Kind) = nullptr;
  cupti::Result (*activity_enable_v2)(cupti::Subscriber, cupti::Kind, void*) = nullptr;
  cupti::Result (*activity_disable)(cupti::Kind) = nullptr;
  cupti::Result (*activity_disable_v2)(cupti::Subscriber, cupti::Kind, void*) = nullptr;
  cupti::Result (*flush_all)(std::uint32_t) = nullptr;
  cupti::Result (*flush_period)(std::uint32_t milliseconds) = nullptr;
  cupti::Result (*set_attribute)(cupti::Attribute, std::size_t*, void*) = nullptr;
  cupti::Result (*register_timestamp)(cupti::Timestamp) = nullptr;
  cupti::Result (*next_record)(std::uint8_t*, std::size_t, cupti::Record**) = nullptr;
  cupti::Result (*next_record_v2)(cupti::Subscriber, std::uint8_t*, std::size_t, cupti::Record**) = nullptr;
  cupti::Result (*dropped_records)(void*, std::uint32_t, std::size_t*) = nullptr;
  cupti::Result (*dropped_records_v2)(cupti::Subscriber, void*, std::uint32_t, std::size_t*) = nullptr;
  cupti::Result (*get_timestamp)(std::uint64_t*) = nullptr;
  cupti::Result (*get_device_id)(void*, std::uint32_t*) = nullptr;
  cupti::Result (*get_stream_id)(void*, void*, std::uint8_t, std::uint32_t*) = nullptr;
  cupti::Result (*get_graph_node_id)(void*, std::uint64_t*) = nullptr;
  cupti::Result (*get_graph_id)(void*, std::uint32_t*) = nullptr;
  cupti::Result (*finalize)() = nullptr;
};

// Functions are null where this version has none.
struct PcSamplingFunctions {
  cupti::Result (*enable)(cupti::SamplingOfContext*) = nullptr;
  cupti::Result (*disable)(cupti::SamplingOfContext*) = nullptr;
  cupti::Result (*start)(cupti::SamplingOfContext*) = nullptr;
  cupti::Result (*stop)(cupti::SamplingOfContext*) = nullptr;
  cupti::Result (*configure)(cupti::SamplingSettings*) = nullptr;
  cupti::Result (*get_data)(cupti::SamplingGetData*) = nullptr;
  cupti::Result (*stall_reason_count)(cupti::StallReasonCount*) = nullptr;
  cupti::Result (*stall_reasons)(cupti::StallReasons*) = nullptr;
  cupti::Result (*register_hash)(cupti::HashCode) = nullptr;

  bool complete() const noexcept {
    return enable && disable && start && stop && configure && get_data && stall_reason_count && stall_reasons;
  }
};

// Functions are null where this version has none.
struct PmSamplingFunctions {
  cupti::Result (*initialize)(cupti::ProfilerInitialize*) = nullptr;
  cupti::Result (*chip_name)(cupti::ChipName*) = nullptr;
  cupti::Result (*host_initialize)(cupti::HostInitialize*) = nullptr;
  cupti::Result (*host_deinitialize)(cupti::HostObject*) = nullptr;
  cupti::Result (*host_add_metrics)(cupti::HostAddMetrics*) = nullptr;
  cupti::Result (*host_image_size)(cupti::HostImageSize*) = nullptr;
  cupti::Result (*host_image)(cupti::HostImage*) = nullptr;
  cupti::Result (*host_passes)(cupti::HostPasses*) = nullptr;
  cupti::Result (*host_evaluate)(cupti::HostEvaluate*) = nullptr;
  cupti::Result (*availability)(cupti::PmAvailability*) = nullptr;
  cupti::Result (*enable)(cupti::PmEnable*) = nullptr;
  cupti::Result (*disable)(cupti::PmObject*) = nullptr;
  cupti::Result (*configure)(cupti::PmConfigure*) = nullptr;
  cupti::Result (*image_size)(cupti::PmImageSize*) = nullptr;
  cupti::Result (*image_initialize)(cupti::PmImage*) = nullptr;
  cupti::Result (*start)(cupti::PmObject*) = nullptr;
  cupti::Result (*stop)(cupti::PmObject*) = nullptr;
  cupti::Result (*decode)(cupti::PmDecode*) = nullptr;
  cupti::Result (*image_info)(cupti::PmImageInfo*) = nullptr;
  cupti::Result (*sample_info)(cupti::PmSampleInfo*) = nullptr;

  bool complete() const noexcept {
    return initialize && chip_name && host_initialize && host_deinitialize && host_add_metrics && host_image_size &&
           host_image && host_passes && host_evaluate && availability && enable && disable && configure && image_size &&
           image_initialize && start && stop && decode && image_info && sample_info;
  }
};

// Counters of kernels that are replayed; since CUDA 12.6.
struct RangeFunctions {
  cupti::Result (*availability)(cupti::ContextAvailability*) = nullptr;
  cupti::Result (*enable)(cupti::RangeEnable*) = nullptr;
  cupti::Result (*disable)(cupti::RangeObject*) = nullptr;
  cupti::Result (*configure)(cupti::RangeConfigure*) = nullptr;
  cupti::Result (*image_size)(cupti::RangeImageSize*) = nullptr;
  cupti::Result (*image_initialize)(cupti::RangeImage*) = nullptr;
  cupti::Result (*start)(cupti::RangeObject*) = nullptr;
  cupti::Result (*stop)(cupti::RangeStop*) = nullptr;
  cupti::Result (*decode)(cupti::RangeDecode*) = nullptr;
  cupti::Result (*image_info)(cupti::RangeImageInfo*) = nullptr;
  cupti::Result (*range_info)(cupti::RangeInfo*) = nullptr;

  bool complete() const noexcept {
    return availability && enable && disable && configure && image_size && image_initialize && start && stop &&
           decode && image_info && range_info;
  }
};

class CuptiLibrary {
 public:
  // `candidates`: paths to try where the program has no copy loaded, best first. On failure *error is one sentence.
  static std::optional<CuptiLibrary> open(const std::vector<std::string>& candidates, std::string* error);

  const CuptiFunctions& call() const noexcept { return functions_; }
  const PcSamplingFunctions& sampling() const noexcept { return sampling_; }
  const PmSamplingFunctions& counting() const noexcept { return counting_; }
  const RangeFunctions& ranges() const noexcept { return ranges_; }
  const std::string& path() const noexcept { return path_; }

  // Asks the library; 0 when it does not answer (no working driver).
  std::uint32_t version() const noexcept;
  // In CUPTI's words, for messages.
  std::string describe(cupti::Result result) const;

  // The subscriber-aware calls are there as a whole.
  bool has_shared_subscription() const noexcept;

 private:
  CuptiLibrary(const Library& library);
  std::string missing_required() const;

  CuptiFunctions functions_;
  PcSamplingFunctions sampling_;
  PmSamplingFunctions counting_;
  RangeFunctions ranges_;
  std::string path_;
};

// The same paths, those of the CUDA that the program runs first, and without those that the driver is too old for.
// Majors are told by the file names (libcupti.so.13); `runtime` and `driver` are majors, 0 where not known.
std::vector<std::string> fitting_candidates(std::vector<std::string> candidates, int runtime, int driver);
// Major of the CUDA runtime library that the program has loaded (it may also be part of another library); 0: none seen.
int loaded_runtime_major();

// Paths of all copies of CUPTI in this process; more than one means that tools may not see each other.
std::vector<std::string> loaded_cupti_copies();

// 12 or 13 (0 when unknown) for what cuptiGetVersion() answered.
int cupti_major(std::uint32_t version) noexcept;
// "12.8", "13.0", as users know it.
std::string cupti_version_name(std::uint32_t version);

}  // namespace leadline::nvidia
