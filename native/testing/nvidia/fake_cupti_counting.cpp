// CUPTI's functions for readings of hardware counters, over the fake GPU.
#include <algorithm>
#include <cstring>
#include <utility>

#include "testing/nvidia/fake_gpu.h"

using namespace leadline::testing;  // NOLINT: one file, exported C names only

extern "C" FakeGpu* fake_gpu();

namespace leadline::nvidia::cupti {
// What the vendor does not tell of its objects.
struct ProfilerHostObject {
  ProfilerType type = ProfilerType::kPmSampling;
  std::vector<std::string> names;
};
struct PmSamplingObject {
  std::int32_t device = 0;
  FakeCounting::OfDevice state;
};
}  // namespace leadline::nvidia::cupti

namespace {

FakeCounting& counting() { return fake_gpu()->counting; }

struct Image {  // header of a counter image; readings follow
  std::size_t room = 0;
  std::size_t count = 0;
};

template <class Params>
bool wrong(const Params* p) {
  return p->size != sizeof *p || p->reserved != nullptr;
}

FakeCounting::Reading* readings(std::uint8_t* image) {
  return reinterpret_cast<FakeCounting::Reading*>(image + sizeof(Image));
}

}  // namespace

extern "C" {

cupti::Result cuptiProfilerInitialize(cupti::ProfilerInitialize* p) {
  return wrong(p) ? cupti::kInvalidParameter : cupti::kSuccess;
}
cupti::Result cuptiDeviceGetChipName(cupti::ChipName* p) {
  if (wrong(p)) return cupti::kInvalidParameter;
  p->name = counting().chip.c_str();
  return cupti::kSuccess;
}
cupti::Result cuptiPmSamplingGetCounterAvailability(cupti::PmAvailability* p) {
  if (wrong(p)) return cupti::kInvalidParameter;
  if (counting().enable_result == cupti::kInsufficientPrivileges) return counting().enable_result;
  p->bytes = 16;
  return cupti::kSuccess;
}
cupti::Result cuptiProfilerHostInitialize(cupti::HostInitialize* p) {
  if (wrong(p)) return cupti::kInvalidParameter;
  if (p->available == nullptr) return cupti::kInvalidParameter;  // chips of after this release need it
  if (std::string(p->chip) == "GX999") return cupti::kInvalidChipName;
  p->host = new cupti::ProfilerHostObject{p->type, {}};
  return cupti::kSuccess;
}
cupti::Result cuptiProfilerHostDeinitialize(cupti::HostObject* p) {
  if (wrong(p)) return cupti::kInvalidParameter;
  delete p->host;
  return cupti::kSuccess;
}
cupti::Result cuptiProfilerHostConfigAddMetrics(cupti::HostAddMetrics* p) {
  if (wrong(p)) return cupti::kInvalidParameter;
  for (std::size_t i = 0; i < p->count; ++i) p->host->names.emplace_back(p->names[i]);
  return counting().passes(p->host->names, p->host->type) > 0 ? cupti::kSuccess : cupti::kInvalidParameter;
}
cupti::Result cuptiProfilerHostGetConfigImageSize(cupti::HostImageSize* p) {
  p->bytes = sizeof(std::size_t);
  return wrong(p) ? cupti::kInvalidParameter : cupti::kSuccess;
}
cupti::Result cuptiProfilerHostGetConfigImage(cupti::HostImage* p) {
  if (wrong(p) || p->bytes < sizeof(std::size_t)) return cupti::kInvalidParameter;
  const std::size_t passes = counting().passes(p->host->names, p->host->type);
  std::memcpy(p->image, &passes, sizeof passes);
  return cupti::kSuccess;
}
cupti::Result cuptiProfilerHostGetNumOfPasses(cupti::HostPasses* p) {
  if (wrong(p)) return cupti::kInvalidParameter;
  std::memcpy(&p->passes, p->image, sizeof p->passes);
  return cupti::kSuccess;
}
cupti::Result cuptiPmSamplingEnable(cupti::PmEnable* p) {
  fake_gpu()->called("cuptiPmSamplingEnable");
  if (wrong(p)) return cupti::kInvalidParameter;
  if (counting().enable_result != cupti::kSuccess) return counting().enable_result;
  p->sampling = new cupti::PmSamplingObject;
  p->sampling->device = static_cast<std::int32_t>(p->device);
  return cupti::kSuccess;
}
cupti::Result cuptiPmSamplingDisable(cupti::PmObject* p) {
  const std::lock_guard lock(fake_gpu()->mutex);
  if (wrong(p)) return cupti::kInvalidParameter;
  fake_gpu()->subscribed_when_counting_ended = fake_gpu()->subscribed != nullptr;
  delete p->sampling;
  return cupti::kSuccess;
}
cupti::Result cuptiPmSamplingSetConfig(cupti::PmConfigure* p) {
  std::size_t passes = 0;
  std::memcpy(&passes, p->config, sizeof passes);
  if (wrong(p) || passes != 1) return cupti::kNotSupported;
  const bool timer = counting().chip != "GA100";
  if (p->trigger == cupti::TriggerMode::kNanoseconds && !timer) return cupti::kNotSupported;
  p->sampling->state.interval_ns = timer ? p->interval : p->interval * 10 / 14;
  p->sampling->state.on = true;
  return cupti::kSuccess;
}
cupti::Result cuptiPmSamplingGetCounterDataSize(cupti::PmImageSize* p) {
  if (wrong(p)) return cupti::kInvalidParameter;
  p->bytes = sizeof(Image) + p->most * sizeof(FakeCounting::Reading);
  return cupti::kSuccess;
}
cupti::Result cuptiPmSamplingCounterDataImageInitialize(cupti::PmImage* p) {
  if (wrong(p)) return cupti::kInvalidParameter;
  const Image made{(p->bytes - sizeof(Image)) / sizeof(FakeCounting::Reading), 0};
  std::memcpy(p->image, &made, sizeof made);
  return cupti::kSuccess;
}
cupti::Result cuptiPmSamplingStart(cupti::PmObject* p) {
  fake_gpu()->called("cuptiPmSamplingStart");
  const std::lock_guard lock(fake_gpu()->mutex);
  if (counting().start_result != cupti::kSuccess) return counting().start_result;
  if (wrong(p) || !p->sampling->state.on || p->sampling->state.open) return cupti::kInvalidOperation;
  p->sampling->state.open = true;
  p->sampling->state.since_ns = fake_gpu()->tick(0);
  return cupti::kSuccess;
}
cupti::Result cuptiPmSamplingStop(cupti::PmObject* p) {
  fake_gpu()->called("cuptiPmSamplingStop");
  const std::lock_guard lock(fake_gpu()->mutex);
  if (wrong(p) || !p->sampling->state.open) return cupti::kInvalidOperation;
  p->sampling->state.open = false;
  p->sampling->state.until_ns = fake_gpu()->tick(0);
  return cupti::kSuccess;
}
cupti::Result cuptiPmSamplingDecodeData(cupti::PmDecode* p) {
  fake_gpu()->called("cuptiPmSamplingDecodeData");
  const std::lock_guard lock(fake_gpu()->mutex);
  if (p->size != cupti::kPmDecodeBytes) return cupti::kInvalidParameter;
  FakeCounting::OfDevice& state = p->sampling->state;
  Image image;
  std::memcpy(&image, p->image, sizeof image);
  const std::size_t room = std::min(image.room, counting().at_once);
  const auto interval = static_cast<std::int64_t>(state.interval_ns);
  const std::int64_t shift = FakeGpu::kCuptiEpoch + counting().clock_error_ns;
  for (; state.since_ns + interval <= state.until_ns && image.count < room; state.since_ns += interval) {
    FakeCounting::Reading one = counting().reading(p->sampling->device, state.since_ns, state.since_ns + interval);
    one.start = static_cast<std::uint64_t>(state.since_ns + shift);
    one.end = static_cast<std::uint64_t>(state.since_ns + interval + shift);
    readings(p->image)[image.count++] = one;
  }
  std::memcpy(p->image, &image, sizeof image);
  const bool more = state.since_ns + interval <= state.until_ns;
  p->stopped = more ? cupti::DecodeStop::kImageFull : cupti::DecodeStop::kEndOfRecords;
  p->overflow = std::exchange(counting().overflow, false) ? 1 : 0;
  return cupti::kSuccess;
}
cupti::Result cuptiPmSamplingGetCounterDataInfo(cupti::PmImageInfo* p) {
  if (wrong(p)) return cupti::kInvalidParameter;
  Image image;
  std::memcpy(&image, p->image, sizeof image);
  p->room = image.room;
  p->populated = p->completed = image.count;
  return cupti::kSuccess;
}
cupti::Result cuptiPmSamplingCounterDataGetSampleInfo(cupti::PmSampleInfo* p) {
  if (wrong(p)) return cupti::kInvalidParameter;
  const FakeCounting::Reading& one = readings(const_cast<std::uint8_t*>(p->image))[p->index];
  p->start = one.start;
  p->end = one.end;
  return cupti::kSuccess;
}
cupti::Result cuptiProfilerHostEvaluateToGpuValues(cupti::HostEvaluate* p) {
  if (wrong(p)) return cupti::kInvalidParameter;
  const FakeCounting::Reading& one = readings(const_cast<std::uint8_t*>(p->image))[p->index];
  for (std::size_t i = 0; i < p->count; ++i) {
    const std::size_t row = fake_counter(p->names[i]);
    if (row == FakeCounting::kMetrics) return cupti::kInvalidParameter;
    p->values[i] = one.values[row];
  }
  return cupti::kSuccess;
}

// Kernels that are replayed.
cupti::Result cuptiProfilerGetCounterAvailability(cupti::ContextAvailability* p) {
  if (wrong(p) || p->context == nullptr) return cupti::kInvalidParameter;
  if (counting().enable_result != cupti::kSuccess) return counting().enable_result;
  p->bytes = 16;
  return cupti::kSuccess;
}
cupti::Result cuptiRangeProfilerEnable(cupti::RangeEnable* p) {
  fake_gpu()->called("cuptiRangeProfilerEnable");
  const std::lock_guard lock(fake_gpu()->mutex);
  if (wrong(p)) return cupti::kInvalidParameter;
  if (counting().range_result != cupti::kSuccess) return counting().range_result;
  p->profiler = reinterpret_cast<cupti::RangeProfiler>(p->context);
  counting().contexts[p->context] = {};
  ++counting().ranges_enabled;
  return cupti::kSuccess;
}
cupti::Result cuptiRangeProfilerDisable(cupti::RangeObject* p) {
  const std::lock_guard lock(fake_gpu()->mutex);
  if (wrong(p) || counting().contexts.erase(p->profiler) == 0) return cupti::kInvalidParameter;
  fake_gpu()->subscribed_when_counting_ended = fake_gpu()->subscribed != nullptr;
  return cupti::kSuccess;
}
cupti::Result cuptiRangeProfilerGetCounterDataSize(cupti::RangeImageSize* p) {
  if (wrong(p) || p->nodes < p->most) return cupti::kInvalidParameter;
  p->bytes = sizeof(Image) + p->most * sizeof(FakeCounting::Reading);
  return cupti::kSuccess;
}
cupti::Result cuptiRangeProfilerCounterDataImageInitialize(cupti::RangeImage* p) {
  if (wrong(p)) return cupti::kInvalidParameter;
  const Image made{(p->bytes - sizeof(Image)) / sizeof(FakeCounting::Reading), 0};
  std::memcpy(p->image, &made, sizeof made);
  return cupti::kSuccess;
}
cupti::Result cuptiRangeProfilerSetConfig(cupti::RangeConfigure* p) {
  const std::lock_guard lock(fake_gpu()->mutex);
  if (p->size != cupti::kRangeConfigureBytes || p->levels != 1 || p->least_level != 1) return cupti::kInvalidParameter;
  if (p->range != cupti::RangeKind::kEachKernel || p->replay != cupti::Replay::kKernel) return cupti::kNotSupported;
  FakeCounting::Ranges& of = counting().contexts.at(p->profiler);
  if (of.open) return cupti::kInvalidOperation;
  of = {};
  of.configured = true;
  std::memcpy(&of.passes, p->config, sizeof of.passes);
  of.most = p->most + (counting().range_too_many ? 1 : 0);
  of.image = p->image;
  return cupti::kSuccess;
}
cupti::Result cuptiRangeProfilerStart(cupti::RangeObject* p) {
  fake_gpu()->called("cuptiRangeProfilerStart");
  const std::lock_guard lock(fake_gpu()->mutex);
  if (counting().start_result != cupti::kSuccess) return counting().start_result;
  FakeCounting::Ranges& of = counting().contexts.at(p->profiler);
  if (wrong(p) || !of.configured || of.open) return cupti::kInvalidOperation;
  of.open = true;
  return cupti::kSuccess;
}
cupti::Result cuptiRangeProfilerStop(cupti::RangeStop* p) {
  fake_gpu()->called("cuptiRangeProfilerStop");
  const std::lock_guard lock(fake_gpu()->mutex);
  FakeCounting::Ranges& of = counting().contexts.at(p->profiler);
  if (p->size != cupti::kRangeStopBytes || !of.open) return cupti::kInvalidOperation;
  of.open = false;
  p->complete = std::exchange(counting().passes_missing, 0) > 0 ? 0 : 1;
  return cupti::kSuccess;
}
cupti::Result cuptiRangeProfilerDecodeData(cupti::RangeDecode* p) {
  const std::lock_guard lock(fake_gpu()->mutex);
  if (wrong(p)) return cupti::kInvalidParameter;
  FakeCounting::Ranges& of = counting().contexts.at(p->profiler);
  Image image;
  std::memcpy(&image, of.image, sizeof image);
  if (counting().range_too_many) of.ranges.emplace_back();
  image.count = std::min(of.ranges.size(), image.room);
  // The last comes first: readers go by the names of ranges.
  for (std::size_t i = 0; i < image.count; ++i) readings(of.image)[i] = of.ranges[image.count - 1 - i];
  std::memcpy(of.image, &image, sizeof image);
  of.configured = false;
  return cupti::kSuccess;
}
cupti::Result cuptiRangeProfilerGetCounterDataInfo(cupti::RangeImageInfo* p) {
  if (wrong(p)) return cupti::kInvalidParameter;
  Image image;
  std::memcpy(&image, p->image, sizeof image);
  p->ranges = image.count;
  return cupti::kSuccess;
}
cupti::Result cuptiRangeProfilerCounterDataGetRangeInfo(cupti::RangeInfo* p) {
  static thread_local std::string name;
  if (wrong(p)) return cupti::kInvalidParameter;
  Image image;
  std::memcpy(&image, p->image, sizeof image);
  name = std::to_string(image.count - 1 - p->index);
  p->name = name.c_str();
  return cupti::kSuccess;
}

}  // extern "C"
