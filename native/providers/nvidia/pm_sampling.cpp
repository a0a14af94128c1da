#include "providers/nvidia/pm_sampling.h"

#include <algorithm>
#include <utility>

#include "base/ids.h"
#include "gpu/measure.h"
#include "providers/nvidia/call_trace.h"
#include "providers/nvidia/counter_plan.h"
#include "providers/nvidia/sampling_refusal.h"

namespace leadline::nvidia {
namespace {

constexpr std::int64_t kFirstCostNs = 2'000'000;   // of a window, until one was measured
constexpr std::size_t kHardwareBytes = 64 << 20;   // of a device's memory, for raw readings
constexpr std::uint32_t kReadingsAtOnce = 2048;    // decoded in one call
constexpr int kMostRounds = 64;                    // of decoding after one window
constexpr std::int64_t kClockSlackNs = 1'000'000;  // of times of readings and of the calls around them
constexpr std::uint64_t kClocksPerMicrosecond = 1400;

// Their readings are triggered by clocks of the device: Turing and GA100 have no timer for it.
bool has_no_timer(const std::string& chip) { return chip.starts_with("TU") || chip == "GA100"; }

}  // namespace

struct PmSampler::Device {
  explicit Device(const PmSamplingFunctions& call) : plan(call, cupti::ProfilerType::kPmSampling) {}

  std::int32_t index = 0;
  std::string chip;
  CounterPlan plan;
  cupti::PmSampling sampling = nullptr;
  std::vector<std::uint8_t> image;
  std::vector<std::uint8_t> empty_image;
  std::int64_t opened_ns = 0;
  bool open = false;
};

PmSampler::PmSampler(const CuptiLibrary& library, PmSamplingOptions options)
    : library_(library),
      options_(std::move(options)),
      call_(library.counting()),
      windows_(options_.budget, options_.window_s, kFirstCostNs,
               {[this] { return seen_.load(std::memory_order_relaxed) != 0; }, [this] { open_window(); },
                [this] { close_window(); }, [this] { prepare(); }}) {}

PmSampler::~PmSampler() = default;

void PmSampler::refuse(const std::string& sentence) {
  {
    const std::lock_guard lock(mutex_);
    if (!sentences_.insert(sentence).second) return;  // of another device
    said_.message += (said_.message.empty() ? "" : " ") + sentence;
  }
  gpu::count_loss(LossKind::kProviderUnavailable, 1, sentence.c_str());
}

std::string PmSampler::refusal(cupti::Result result, const char* doing) const {
  return sampling_refusal(library_, "GPU metrics are not counted", "compute capability 7.5", result, doing);
}

bool PmSampler::begin() {
  if (!call_.complete()) {
    refuse("GPU metrics are not counted because CUPTI " + cupti_version_name(library_.version()) + " (" +
           library_.path() + ") has no functions for it; install nvidia-cuda-cupti of CUDA 12.6 or later.");
    return false;
  }
  windows_.begin(leadline_monitor_now());
  return true;
}

void PmSampler::device_seen(std::int32_t device) noexcept {
  if (device < 0 || static_cast<std::size_t>(device) >= kMostDevices) return;
  const std::uint64_t bit = std::uint64_t{1} << device;
  if ((seen_.load(std::memory_order_relaxed) & bit) == 0) seen_.fetch_or(bit, std::memory_order_relaxed);
}

void PmSampler::set_up_new_devices() {
  const std::uint64_t fresh = seen_.load(std::memory_order_relaxed) & ~known_;
  for (std::size_t index = 0; index < kMostDevices && fresh >> index != 0; ++index) {
    if ((fresh >> index & 1) == 0) continue;
    known_ |= std::uint64_t{1} << index;
    auto device = std::make_unique<Device>(call_);
    device->index = static_cast<std::int32_t>(index);
    std::string why;
    if (set_up(*device, &why)) {
      const std::lock_guard lock(mutex_);
      said_.chips += (said_.chips.empty() ? "" : ", ") + device->chip;
      said_.metrics = device->plan.choice().taken;
      devices_.push_back(std::move(device));
    } else {
      refuse(why);
    }
  }
}

bool PmSampler::choose(Device& device, const std::vector<std::uint8_t>& available, std::string* why) {
  cupti::Result failed = cupti::kSuccess;
  if (!device.plan.choose(device.chip, available, {options_.metrics}, &failed)) {
    *why = failed != cupti::kSuccess ? refusal(failed, "to set them up")
                                     : "GPU metrics are not counted because " + device.chip + " counts none of " +
                                           listed(options_.metrics) + ".";
    return false;
  }
  const CounterChoice& choice = device.plan.choice();
  if (!choice.unknown.empty()) {
    refuse("This device (" + device.chip + ") does not count " + listed(choice.unknown) + ".");
  }
  if (!choice.left_out.empty()) {
    refuse("This device (" + device.chip + ") cannot count " + listed(choice.left_out) + " together with " +
           listed(choice.taken) + "; ask for them in a run of their own, or with --replay.");
  }
  return true;
}

bool PmSampler::set_up(Device& device, std::string* why) {
  auto available = sized<cupti::PmAvailability>();
  available.device = static_cast<std::size_t>(device.index);
  std::vector<std::uint8_t> image;
  cupti::Result result = look_at_device(call_, available.device, available, call_.availability, &device.chip, &image);
  if (result != cupti::kSuccess || device.chip.empty()) {
    *why = refusal(result, "to say what the device counts");
    return false;
  }
  if (!choose(device, image, why)) return false;
  auto enable = sized<cupti::PmEnable>();
  enable.device = available.device;
  result = traced("cuptiPmSamplingEnable", call_.enable, &enable);
  if (result != cupti::kSuccess) {
    *why = refusal(result, "to begin");
    return false;
  }
  device.sampling = enable.sampling;
  auto configure = sized<cupti::PmConfigure>();
  configure.sampling = device.sampling;
  configure.config = device.plan.config().data();
  configure.config_bytes = device.plan.config().size();
  configure.hardware_bytes = kHardwareBytes;
  const bool by_clocks = has_no_timer(device.chip);
  configure.trigger = by_clocks ? cupti::TriggerMode::kClocks : cupti::TriggerMode::kNanoseconds;
  const auto interval = static_cast<std::uint64_t>(options_.interval_ns);
  configure.interval = by_clocks ? interval * kClocksPerMicrosecond / 1000 : interval;
  configure.when_full = cupti::WhenFull::kKeepOldest;
  result = traced("cuptiPmSamplingSetConfig", call_.configure, &configure);
  if (result == cupti::kSuccess && make_image(device)) return true;
  *why = refusal(result, "the settings");
  return false;
}

bool PmSampler::make_image(Device& device) {
  auto bytes = sized<cupti::PmImageSize>();
  bytes.sampling = device.sampling;
  std::vector<const char*> names = device.plan.vendors();
  bytes.names = names.data();
  bytes.count = names.size();
  bytes.most = kReadingsAtOnce;
  auto made = sized<cupti::PmImage>();
  made.sampling = device.sampling;
  if (!nvidia::make_image(bytes, call_.image_size, made, call_.image_initialize, &device.empty_image)) return false;
  device.image = device.empty_image;
  return true;
}

// Takes a second on an H100: before windows, whose time and cost are those of reading.
void PmSampler::prepare() {
  try {
    set_up_new_devices();
  } catch (...) {
    gpu::count_loss(LossKind::kInternalError, 1, "GPU metrics are not counted for lack of memory.");
  }
}

void PmSampler::open_window() {
  try {
    for (const auto& device : devices_) {
      auto of = sized<cupti::PmObject>();
      of.sampling = device->sampling;
      samples_.window_opens(device->index, leadline_monitor_now());
      const cupti::Result result = traced("cuptiPmSamplingStart", call_.start, &of);
      device->opened_ns = leadline_monitor_now();  // before that there is no reading
      device->open = result == cupti::kSuccess;
      if (device->open) continue;
      samples_.window_closes(device->index, device->opened_ns);
      refuse(refusal(result, "to start"));
    }
  } catch (...) {
    gpu::count_loss(LossKind::kInternalError, 1, "GPU metrics are not counted for lack of memory.");
  }
}

void PmSampler::close_window() {
  for (const auto& device : devices_) {
    if (!std::exchange(device->open, false)) continue;
    auto of = sized<cupti::PmObject>();
    of.sampling = device->sampling;
    traced("cuptiPmSamplingStop", call_.stop, &of);
    const std::int64_t closed_ns = leadline_monitor_now();
    try {
      read(*device, closed_ns);
    } catch (...) {
      gpu::count_loss(LossKind::kCountersDropped, 1, "Readings of counters could not be kept for lack of memory.");
    }
    samples_.window_closes(device->index, closed_ns);
  }
}

void PmSampler::read(Device& device, std::int64_t closed_ns) {
  gpu::CounterBatch batch;
  batch.device = device.index;
  batch.metrics = device.plan.choice().metrics();
  for (int round = 0; round < kMostRounds; ++round) {
    device.image = device.empty_image;
    auto decode = sized<cupti::PmDecode>();
    decode.size = cupti::kPmDecodeBytes;
    decode.sampling = device.sampling;
    decode.image = device.image.data();
    decode.bytes = device.image.size();
    const cupti::Result result = traced("cuptiPmSamplingDecodeData", call_.decode, &decode);
    const bool full = result == cupti::kOutOfMemory || decode.overflow != 0;
    {
      const std::lock_guard lock(mutex_);
      ++said_.rounds;
      said_.overflows += full ? 1 : 0;
      said_.failed_rounds += result != cupti::kSuccess && !full ? 1 : 0;
      said_.stopped = static_cast<std::int32_t>(decode.stopped);
    }
    if (full) {
      gpu::count_loss(LossKind::kCountersDropped, 1,
                      "The device's buffer of counters was full, so the end of a window is missing; read them less "
                      "often with LEADLINE_COUNTER_INTERVAL (microseconds).");
    } else if (result != cupti::kSuccess) {
      const std::string said = "CUPTI could not decode the readings of a window to its end (" +
                               library_.describe(result) + "), so the rest of them is missing.";
      gpu::count_loss(LossKind::kCountersDropped, 1, said.c_str());
    }
    if (result != cupti::kSuccess) break;
    const bool more = decode.stopped == cupti::DecodeStop::kImageFull;
    if (!take(device, batch)) {
      // It says that there is more and gives nothing: nobody knows how much is missing.
      if (more) {
        gpu::count_loss(LossKind::kCountersDropped, 1,
                        "CUPTI gave no readings although it had said that a window had more.");
      }
      break;
    }
    if (!more) break;
    if (round == kMostRounds - 1) {
      gpu::count_loss(LossKind::kCountersDropped, 1, "A window had more readings than are taken of one.");
    }
  }
  if (batch.intervals.empty()) return;
  align(device, batch, closed_ns);
  samples_.give(std::move(batch));
}

// What has been decoded; false where there is nothing.
bool PmSampler::take(Device& device, gpu::CounterBatch& batch) {
  auto info = sized<cupti::PmImageInfo>();
  info.image = device.image.data();
  info.bytes = device.image.size();
  if (call_.image_info(&info) != cupti::kSuccess || info.completed == 0) return false;
  for (std::size_t i = 0; i < std::min<std::size_t>(info.completed, kReadingsAtOnce); ++i) {
    auto at = sized<cupti::PmSampleInfo>();
    at.sampling = device.sampling;
    at.image = device.image.data();
    at.bytes = device.image.size();
    at.index = i;
    if (call_.sample_info(&at) != cupti::kSuccess || at.end <= at.start) continue;
    if (!device.plan.evaluate(device.image, i)) continue;
    batch.intervals.push_back({static_cast<std::int64_t>(at.start), static_cast<std::int64_t>(at.end)});
    device.plan.add_to(&batch.values);
  }
  return true;
}

// From CUPTI's clock to ours. NVIDIA says of these times only that they are the CPU's: where they do not lie in their
// window, its beginning is that of the first reading.
void PmSampler::align(Device& device, gpu::CounterBatch& batch, std::int64_t closed_ns) {
  const auto clock = library_.call().get_timestamp;
  const gpu::ClockRelation relation =
      gpu::measure_clock([clock](std::uint64_t* ns) { return clock(ns) == cupti::kSuccess; });
  std::int64_t shift = relation.offset_ns;
  const bool fits = relation.known && batch.intervals.front().start_ns + shift >= device.opened_ns - kClockSlackNs &&
                    batch.end_ns() + shift <= closed_ns + kClockSlackNs;
  if (!fits) {
    shift = device.opened_ns - batch.intervals.front().start_ns;
    const std::lock_guard lock(mutex_);
    said_.aligned = true;
  }
  for (auto& interval : batch.intervals) {
    interval.start_ns += shift;
    interval.end_ns += shift;
  }
}

bool PmSampler::stop() {
  if (windows_.stop(answer_limit())) return true;
  refuse(
      "GPU metrics are not counted from here on because CUPTI did not answer in time; the program continues without "
      "them.");
  return false;
}

void PmSampler::release() noexcept {
  for (const auto& device : devices_) {
    auto of = sized<cupti::PmObject>();
    of.sampling = device->sampling;
    traced("cuptiPmSamplingDisable", call_.disable, &of);
    device->plan.release();
  }
  devices_.clear();
}

CounterDetails PmSampler::details() const {
  const std::lock_guard lock(mutex_);
  CounterDetails details = said_;
  details.windows = windows_.counters();
  details.samples = samples_.counters();
  return details;
}

}  // namespace leadline::nvidia
