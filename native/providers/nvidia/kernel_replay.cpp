#include "providers/nvidia/kernel_replay.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "base/ids.h"
#include "gpu/measure.h"
#include "providers/nvidia/call_trace.h"
#include "providers/nvidia/sampling_refusal.h"

namespace leadline::nvidia {
namespace {

constexpr std::int64_t kFirstCostNs = 50'000'000;    // of a window, until one was measured
constexpr std::int64_t kLongestNs = 10'000'000'000;  // of a stretch of a thread that launches no more
constexpr std::int64_t kMomentNs = 50'000;           // that a lock may be held which a launch waits for
constexpr const char* kDuration = "gpu__time_duration.sum";
thread_local bool launch_is_node = false;  // the launch that this thread is in became a node of a graph

std::int64_t in_unit(const gpu::CountedMetric& metric, double value, double duration_ns) {
  if (!std::isfinite(value) || value < 0) return 0;
  return std::llround(metric.meaning == gpu::CounterMeaning::kAmount ? value : std::min(value, 1.0) * duration_ns);
}

}  // namespace

struct KernelReplay::Target {
  explicit Target(const PmSamplingFunctions& call) : plan(call, cupti::ProfilerType::kRanges) {}

  void* context = nullptr;
  std::int32_t device = -1;
  std::string chip;
  CounterPlan plan;
  cupti::RangeProfiler profiler = nullptr;
  std::vector<std::uint8_t> empty_image;
  std::vector<std::uint8_t> image;
  bool refused = false;
  bool ready = false;
};

KernelReplay::KernelReplay(const CuptiLibrary& library, KernelReplayOptions options)
    : library_(library),
      options_(std::move(options)),
      call_(library.ranges()),
      windows_(options_.budget, options_.window_s, kFirstCostNs,
               {[this] { return true; },
                [this] {
                  const std::lock_guard lock(mutex_);
                  wanted_ = !ended_;
                  busy_.store(true, std::memory_order_release);
                },
                [this] {
                  // What has begun ends with its launches: passes may take longer than a window.
                  const std::lock_guard lock(mutex_);
                  wanted_ = false;
                  busy_.store(stretch_.target != nullptr || !prepared_, std::memory_order_release);
                }}) {}

KernelReplay::~KernelReplay() = default;

void KernelReplay::refuse(const std::string& sentence) {
  if (!sentences_.insert(sentence).second) return;
  said_.message += (said_.message.empty() ? "" : " ") + sentence;
  gpu::count_loss(LossKind::kProviderUnavailable, 1, sentence.c_str());
}

std::string KernelReplay::refusal(cupti::Result result, const char* doing) const {
  return sampling_refusal(library_, "Kernels are not replayed for their counters", "compute capability 7.5", result,
                          doing);
}

bool KernelReplay::begin() {
  if (!library_.counting().complete() || !call_.complete()) {
    const std::lock_guard lock(mutex_);
    refuse("Kernels are not replayed for their counters because CUPTI " + cupti_version_name(library_.version()) +
           " (" + library_.path() + ") has no functions for it; install nvidia-cuda-cupti of CUDA 12.6 or later.");
    return false;
  }
  windows_.begin(leadline_monitor_now());
  return true;
}

bool KernelReplay::make_image(Target& target) {
  std::vector<const char*> names = target.plan.vendors();
  auto bytes = sized<cupti::RangeImageSize>();
  bytes.profiler = target.profiler;
  bytes.names = names.data();
  bytes.count = names.size();
  bytes.most = options_.at_once;
  bytes.nodes = static_cast<std::uint32_t>(options_.at_once);
  auto made = sized<cupti::RangeImage>();
  made.profiler = target.profiler;
  return nvidia::make_image(bytes, call_.image_size, made, call_.image_initialize, &target.empty_image);
}

bool KernelReplay::set_up(Target& target, std::string* why) {
  auto available = sized<cupti::ContextAvailability>();
  available.context = target.context;
  std::vector<std::uint8_t> image;
  cupti::Result result = look_at_device(library_.counting(), static_cast<std::size_t>(target.device), available,
                                        call_.availability, &target.chip, &image);
  if (result != cupti::kSuccess || target.chip.empty()) {
    *why = refusal(result, "to say what the device counts");
    return false;
  }
  if (!target.plan.choose(target.chip, image, {options_.metrics, false, {kDuration}}, &result)) {
    *why = result != cupti::kSuccess ? refusal(result, "to set them up")
                                     : "Kernels are not replayed for their counters because " + target.chip +
                                           " counts none of " + listed(options_.metrics) + ".";
    return false;
  }
  auto enable = sized<cupti::RangeEnable>();
  enable.context = target.context;
  result = traced("cuptiRangeProfilerEnable", call_.enable, &enable);
  if (result != cupti::kSuccess) {
    *why = refusal(result, "to begin");
    return false;
  }
  target.profiler = enable.profiler;
  if (!make_image(target)) {
    *why = refusal(cupti::kNotSupported, "room for the values");
    return false;
  }
  return true;
}

// Of a device the first context that is seen launching; null: not to be counted. It is set up here, at its first
// launch, for which no other thread waits: the lock is let go meanwhile.
KernelReplay::Target* KernelReplay::target_of(void* context, std::int32_t device, std::unique_lock<std::mutex>& lock) {
  if (const auto known = targets_.find(context); known != targets_.end()) {
    return known->second->refused || !known->second->ready ? nullptr : known->second.get();
  }
  const bool another = std::ranges::any_of(
      targets_, [&](const auto& one) { return one.second->device == device && !one.second->refused; });
  auto made = std::make_unique<Target>(library_.counting());
  Target& target = *made;
  target.context = context;
  target.device = device;
  targets_.emplace(context, std::move(made));
  prepared_ = true;
  std::string why;
  if (another) {
    why = "The program launches on several contexts of one device; only kernels of the first are replayed.";
  } else {
    lock.unlock();
    const bool done = set_up(target, &why);
    lock.lock();
    target.ready = done;
    if (done) {
      if (const CounterChoice& choice = target.plan.choice(); !choice.unknown.empty()) {
        refuse("This device (" + target.chip + ") does not count " + listed(choice.unknown) + ".");
      }
      said_.chips += (said_.chips.empty() ? "" : ", ") + target.chip;
      said_.metrics = target.plan.choice().taken;
      said_.passes = std::max(said_.passes, target.plan.passes());
      return &target;
    }
  }
  target.refused = true;
  refuse(why);
  return nullptr;
}

bool KernelReplay::configure(Target& target, cupti::Result* result) {
  target.image = target.empty_image;
  auto configure = sized<cupti::RangeConfigure>();
  configure.size = cupti::kRangeConfigureBytes;
  configure.profiler = target.profiler;
  configure.config = target.plan.config().data();
  configure.config_bytes = target.plan.config().size();
  configure.image = target.image.data();
  configure.bytes = target.image.size();
  configure.range = cupti::RangeKind::kEachKernel;
  configure.replay = cupti::Replay::kKernel;
  configure.most = options_.at_once;
  configure.levels = configure.least_level = configure.target_level = 1;
  *result = traced("cuptiRangeProfilerSetConfig", call_.configure, &configure);
  return *result == cupti::kSuccess;
}

void KernelReplay::open_stretch(Target& target) {
  cupti::Result result = cupti::kSuccess;
  auto start = sized<cupti::RangeObject>();
  start.profiler = target.profiler;
  if (configure(target, &result)) result = traced("cuptiRangeProfilerStart", call_.start, &start);
  if (result != cupti::kSuccess) {
    target.refused = true;
    return refuse(refusal(result, "to start"));
  }
  stretch_ = {&target, std::this_thread::get_id(), {}, {}, leadline_monitor_now(), 0, 0, false};
  counting_.store(stretch_.thread);
  stretch_.calls.reserve(options_.at_once);
  stretch_.ended_ns.reserve(options_.at_once);
  ++said_.stretches;
}

// Or old: its thread may not launch again.
bool KernelReplay::is_full(const Stretch& stretch) const {
  return stretch.calls.size() >= options_.at_once || leadline_monitor_now() - stretch.opened_ns > kLongestNs;
}

// Whether the calling thread, which launches, has the lock. If not its launch may fall into a stretch of another one.
bool KernelReplay::may_count(std::unique_lock<std::mutex>& lock) noexcept {
  if (counting_.load() == std::this_thread::get_id()) {
    lock.lock();
    return true;
  }
  const std::int64_t until = leadline_monitor_now() + kMomentNs;  // where cores are rare a yield takes milliseconds
  while (!lock.try_lock() && leadline_monitor_now() < until) std::this_thread::yield();
  if (!lock.owns_lock()) passed_.store(true);
  return lock.owns_lock();
}

void KernelReplay::enter(void* context, std::int32_t device, Launch what, const Call& call) noexcept try {
  std::int64_t began = leadline_monitor_now();
  launch_is_node = false;
  std::unique_lock lock(mutex_, std::defer_lock);
  if (!may_count(lock)) return;
  const bool mine = stretch_.target != nullptr && stretch_.thread == std::this_thread::get_id();
  if (stretch_.target != nullptr && !mine) {
    if (stretch_.open_call != 0 || !is_full(stretch_)) {
      stretch_.mixed = stretch_.mixed || stretch_.target->context == context;
      return;
    }
    close_stretch();
  }
  if (what == Launch::kGraph && (mine || wanted_)) {
    refuse("Graphs are not replayed for counters; their kernels have none.");
  }
  if (mine && (stretch_.target->context != context || what == Launch::kGraph || is_full(stretch_))) close_stretch();
  if (stretch_.target == nullptr && what == Launch::kKernel && device >= 0) {
    Target* const target = target_of(context, device, lock);
    began = leadline_monitor_now();  // what is set up once is no part of what windows cost
    if (wanted_ && stretch_.target == nullptr) {
      wanted_ = false;  // one stretch in a window
      if (target != nullptr) open_stretch(*target);
    }
  }
  busy_.store(stretch_.target != nullptr || wanted_ || !prepared_, std::memory_order_release);
  gpu::KernelRun run;
  run.context = call.place;
  run.device = device;
  run.stream = call.stream;
  run.correlation = run.call = call.id;
  run.start_ns = began;
  if (stretch_.target != nullptr && stretch_.thread == std::this_thread::get_id() &&
      launches_.expect(run, call.kernel)) {
    stretch_.open_call = call.id;
    stretch_.entered_ns = began;
  } else {
    windows_.spend(leadline_monitor_now() - began);
  }
} catch (...) {
  gpu::count_loss(LossKind::kInternalError, 1, "Kernels are not replayed for lack of memory.");
}

// The driver tells of nodes under locks of its own, which it takes also in calls that this class makes under mutex_.
void KernelReplay::captured() noexcept { launch_is_node = true; }

bool KernelReplay::leave(bool failed) noexcept {
  if (counting_.load() != std::this_thread::get_id()) return false;
  const std::lock_guard lock(mutex_);
  if (stretch_.target == nullptr || stretch_.open_call == 0 || stretch_.thread != std::this_thread::get_id())
    return false;
  const std::uint32_t call = std::exchange(stretch_.open_call, 0);
  const std::int64_t now = leadline_monitor_now();
  windows_.spend(now - stretch_.entered_ns);
  if (failed || launch_is_node) {
    launches_.forget(call);
    return false;
  }
  stretch_.calls.push_back(call);  // there is room for as many as a stretch has
  stretch_.ended_ns.push_back(now);
  return true;
}

// Under mutex_, on the thread of the stretch or where no launch can be under way.
void KernelReplay::close_stretch() {
  Target& target = *std::exchange(stretch_.target, nullptr);
  counting_.store({});
  auto stop = sized<cupti::RangeStop>();
  stop.size = cupti::kRangeStopBytes;
  stop.profiler = target.profiler;
  auto decode = sized<cupti::RangeDecode>();
  decode.profiler = target.profiler;
  const bool whole = traced("cuptiRangeProfilerStop", call_.stop, &stop) == cupti::kSuccess && stop.complete != 0 &&
                     traced("cuptiRangeProfilerDecodeData", call_.decode, &decode) == cupti::kSuccess &&
                     decode.dropped == 0;
  stretch_.mixed = passed_.exchange(false) || stretch_.mixed;
  if (whole && !stretch_.mixed) return read(target);
  for (const std::uint32_t call : stretch_.calls) launches_.forget(call);
  gpu::count_loss(LossKind::kCountersDropped, stretch_.calls.size(),
                  stretch_.mixed ? "Several threads launched on one context while kernels were replayed, so whose "
                                   "counters are whose is not known."
                                 : "CUPTI did not finish the passes of replayed kernels.");
}

void KernelReplay::read(Target& target) {
  const std::vector<std::uint32_t>& calls = stretch_.calls;
  auto info = sized<cupti::RangeImageInfo>();
  info.image = target.image.data();
  info.bytes = target.image.size();
  if (call_.image_info(&info) != cupti::kSuccess) info.ranges = 0;
  std::vector<bool> given(calls.size());
  const std::vector<gpu::CountedMetric> metrics = target.plan.choice().metrics();
  // A launch that ran nothing has no range, or one more was launched than is known: then none can be told from others.
  const bool equal = info.ranges == calls.size();
  for (std::size_t i = 0; equal && i < info.ranges; ++i) {
    auto range = sized<cupti::RangeInfo>();
    range.image = info.image;
    range.bytes = info.bytes;
    range.index = i;
    range.delimiter = "/";
    if (call_.range_info(&range) != cupti::kSuccess || range.name == nullptr) continue;
    const std::size_t at = std::strtoull(range.name, nullptr, 10);  // launches are numbered from 0
    if (at >= calls.size() || given[at] || !target.plan.evaluate(target.image, i)) continue;
    const double duration_ns = target.plan.value(kDuration);
    if (!(duration_ns > 0)) continue;
    std::vector<double> values;
    target.plan.add_to(&values);
    std::vector<leadline_measure> measures{{gpu::number(MetricKind::kCountedTime), std::llround(duration_ns)}};
    for (std::size_t m = 0; m < metrics.size(); ++m) {
      measures.push_back({gpu::number(metrics[m].metric), in_unit(metrics[m], values[m], duration_ns)});
    }
    launches_.give(calls[at], std::move(measures), std::llround(duration_ns), stretch_.ended_ns[at]);
    given[at] = true;
    ++said_.launches;
  }
  std::uint64_t lost = 0;
  for (std::size_t at = 0; at < calls.size(); ++at) {
    if (given[at]) continue;
    launches_.forget(calls[at]);
    ++lost;
  }
  gpu::count_loss(LossKind::kCountersDropped, lost,
                  equal ? "CUPTI has no values of kernels that were replayed."
                        : "CUPTI replayed other kernels than were launched, so whose counters are whose is not known.");
}

void KernelReplay::context_destroyed(void* context) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = targets_.find(context);
  if (found == targets_.end()) return;
  Target& target = *found->second;
  if (stretch_.target == &target) {
    stretch_.target = nullptr;
    counting_.store({});
    for (const std::uint32_t call : stretch_.calls) launches_.forget(call);
    gpu::count_loss(LossKind::kCountersDropped, stretch_.calls.size(),
                    "A context was destroyed while its kernels were replayed.");
    busy_.store(wanted_ || !prepared_, std::memory_order_release);
  }
  target.plan.release();
  targets_.erase(found);  // another context may come to stand there
}

bool KernelReplay::stop() {
  const bool ended = windows_.stop(answer_limit());
  const bool answered = ended && calls_.run(
                                     [this] {
                                       const std::lock_guard lock(mutex_);
                                       ended_ = true;
                                       wanted_ = false;
                                       if (stretch_.target != nullptr) close_stretch();
                                       busy_.store(false, std::memory_order_release);
                                     },
                                     limit_);
  if (answered) return true;
  gpu::count_loss(LossKind::kProviderUnavailable, 1,
                  "CUPTI did not answer in time when kernels ceased to be replayed for their counters; the "
                  "program continues without them.");
  return false;
}

void KernelReplay::abandon() noexcept {
  windows_.abandon();
  calls_.abandon();
}

void KernelReplay::release() noexcept {
  const std::lock_guard lock(mutex_);
  for (const auto& [context, target] : targets_) {
    auto of = sized<cupti::RangeObject>();
    of.profiler = target->profiler;
    if (of.profiler != nullptr) traced("cuptiRangeProfilerDisable", call_.disable, &of);
    target->plan.release();
  }
  targets_.clear();
}

ReplayDetails KernelReplay::details() const {
  const std::lock_guard lock(mutex_);
  ReplayDetails details = said_;
  details.windows = windows_.counters();
  return details;
}

}  // namespace leadline::nvidia
