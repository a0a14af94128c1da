#include "providers/nvidia/measuring.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/ids.h"
#include "base/own_thread.h"
#include "gpu/await_records.h"
#include "gpu/measure.h"
#include "providers/nvidia/call_trace.h"
#include "providers/nvidia/in_callback.h"
#include "providers/nvidia/occupancy.h"
#include "providers/nvidia/records.h"

namespace leadline::nvidia {
namespace {

using std::chrono::duration;
using std::chrono::steady_clock;

constexpr std::chrono::milliseconds kPatience{100};  // for callbacks that are running

// Set while our own thread makes a call that does nothing, in whose end CUPTI is finalised.
constinit __attribute__((tls_model("initial-exec"))) thread_local bool finalizing_here = false;

auto cupti_clock(const CuptiFunctions& cupti) {
  return [&cupti](std::uint64_t* ns) { return cupti.get_timestamp(ns) == cupti::kSuccess; };
}

}  // namespace

Measuring::Measuring(const Options& options, Driver driver, CuptiLibrary library, const gpu::KernelSources& sources)
    : options_(options),
      driver_(std::move(driver)),
      library_(std::move(library)),
      version_(library_.version()),
      callbacks_(library_.call(), calls_, tables_),
      subscription_(library_, calls_),
      fold_(tables_.launches, tables_.graphs, sources, kVendor) {
  if (!options_.instructions.empty())
    sampler_ = std::make_unique<PcSampler>(library_, driver_, sampling_options(options_));
  if (options_.gpu_metrics.empty()) return;
  if (options_.replay) {
    replay_ = std::make_unique<KernelReplay>(library_, replay_options(options_));
  } else {
    counters_ = std::make_unique<PmSampler>(library_, counter_options(options_));
  }
}

Measuring::~Measuring() { InCallback::forget(this); }

bool Measuring::start(std::string* message, std::string* holder, bool inside_cuda_start, bool paused) {
  calls_.load(library_.call());
  if (!subscription_.open(options_.shared, on_callback, nullptr)) {
    *message = subscription_.message();
    *holder = subscription_.holder();
    return false;
  }
  if (calls_.followed() == 0) calls_.load(library_.call());  // some versions know the names only when initialised
  if (calls_.followed() == 0) {
    *message = "CUPTI (" + library_.path() +
               ") does not name its callbacks, so GPU work is not measured; `leadline doctor` "
               "shows the versions involved.";
    subscription_.close();
    return false;
  }
  if (!counters_) subscription_.use_clock_of_monitor();
  clock_ = gpu::measure_clock(cupti_clock(library_.call()));
  offer_buffers();
  InCallback::use(this);
  sampling_ = sampler_ && sampler_->begin();
  const SampledRecords beside = sampling_ ? sampler_->records() : SampledRecords::kNone;
  if (!subscription_.start_activity(on_requested, on_completed, options_.whole_graphs, options_.traces,
                                    sampling_ ? std::optional(beside) : std::nullopt)) {
    sampling_ = false;
    *message = subscription_.message();
    subscription_.close();
    InCallback::forget(this);
    return false;
  }
  callbacks_.set_time_waits(!subscription_.has_waits());
  if (sampling_) callbacks_.tell_launches();
  if (sampling_ && beside != SampledRecords::kAll) callbacks_.expect_no_copies();
  if (sampling_ && beside == SampledRecords::kNone) callbacks_.expect_no_kernels();
  if (!options_.recording.empty()) {
    recorder_ = gpu::Recorder::create(options_.recording, "CUPTI " + cupti_version_name(version_), message);
    if (recorder_) {
      callbacks_.set_recorder(recorder_.get());
      leadline_monitor_register(LEADLINE_DOMAIN_GPU_ACTIVITY, on_activity, this, &activities_);
    } else {
      gpu::count_loss(LossKind::kProviderUnavailable, 1, message->c_str());
      message->clear();
    }
  }
  if (!subscription_.missing_kinds().empty()) {
    const std::string left_out = "CUPTI does not offer records of " + subscription_.missing_kinds() +
                                 " here, so these are not measured; a newer nvidia-cuda-cupti may.";
    gpu::count_loss(LossKind::kProviderUnavailable, 1, left_out.c_str());
  }
  if (!inside_cuda_start) learn_devices();
  counting_ = counters_ && counters_->begin();
  replaying_ = replay_ && replay_->begin();
  callbacks_.set_replay(replaying_ ? replay_.get() : nullptr);
  fold_.follow_kernels(sampling_ ? &sampler_->samples() : nullptr, counting_ ? &counters_->samples() : nullptr,
                       replaying_ ? &replay_->launches() : nullptr);
  if (sampling_ && sampler_->names_code() && library_.sampling().register_hash != nullptr)
    traced("cuptiRegisterComputeCrcCallback", library_.sampling().register_hash, on_code);
  paused ? pause() : resume();
  subscription_.enable_callbacks();
  if (!inside_cuda_start) start_thread();
  return true;
}

void Measuring::pause() {
  callbacks_.pause();
  const std::unique_lock rest(rest_mutex_, std::chrono::system_clock::now() + limit_);
  if (rest && paused_since_ns_ == 0) paused_since_ns_ = waiting_clock();
  if (sampling_) sampler_->windows().pause();
  if (counting_) counters_->windows().pause();
  if (replaying_) replay_->windows().pause();
  if (places_ != 0) leadline_monitor_unregister(places_);
  places_ = 0;
  const std::lock_guard lock(fold_mutex_);
  const std::int64_t now = leadline_monitor_now();
  fold_.pause(now);
  if (recorder_) recorder_->pause(true, now);
}

void Measuring::resume() {
  {
    const std::unique_lock rest(rest_mutex_, std::chrono::system_clock::now() + limit_);
    if (rest) paused_since_ns_ = 0;
    const bool must_go_on = !rest || rests_;
    const bool goes_on = !must_go_on || ask("told to go on after a pause", [this, is_ours = rest.owns_lock()] {
      if (!is_ours) return;
      callbacks_.api().forget_open_calls();
      subscription_.rest(false);
    });
    if (!rest || !goes_on) return;  // CUPTI does not answer, which has been told
    rests_ = false;
  }
  {
    const std::lock_guard lock(fold_mutex_);
    const std::int64_t now = leadline_monitor_now();
    fold_.resume(now);
    if (recorder_) recorder_->pause(false, now);
  }
  if (places_ == 0) leadline_monitor_register(LEADLINE_DOMAIN_REGION, on_place_changed, this, &places_);
  callbacks_.resume();
  if (sampling_) sampler_->windows().resume();
  if (counting_) counters_->windows().resume();
  if (replaying_) replay_->windows().resume();
}

// At once, or in the callback of the first context.
void Measuring::start_thread() {
  const std::lock_guard lock(wake_mutex_);
  if (ending_ || thread_.joinable()) return;
  thread_ = own_thread([this] {
    run();
    const std::lock_guard ended(wake_mutex_);
    ended_ = true;
    wake_.notify_all();
  });
  if (sampling_) sampler_->windows().start_thread();
  if (counting_) counters_->windows().start_thread();
  if (replaying_) replay_->windows().start_thread();
}

// What the driver says of the devices; before any record of theirs is folded.
void Measuring::learn_devices() noexcept {
  const std::lock_guard lock(fold_mutex_);
  if (!devices_.empty()) return;
  try {
    devices_ = driver_.devices();
    fold_.describe(devices_);
    if (recorder_) recorder_->devices(devices_);
    describe_devices();
  } catch (...) {
    devices_.clear();  // the next time
    gpu::count_loss(LossKind::kInternalError, 1, "Devices could not be described for lack of memory.");
  }
}

void Measuring::on_callback(void*, cupti::Domain domain, std::uint32_t cbid, const void* data) {
  if (OwnCall::is_open()) return;  // none of the program's
  const InCallback guard;
  if (!guard) return;
  Measuring& self = *guard;
  if (domain == cupti::Domain::kState) {
    // The driver lost the device and CUPTI detaches by itself; nothing more may be asked of it.
    self.fatal_.store(true, std::memory_order_relaxed);
    self.callbacks_.close();
    return;
  }
  if (finalizing_here) {
    const auto& api = *static_cast<const cupti::CallbackData*>(data);
    // CUPTI may be taken down safely at the end of a driver call, which is where we are.
    if (domain == cupti::Domain::kDriver && api.site == cupti::Site::kExit && !self.finalized_.exchange(true)) {
      self.library_.call().finalize();
    }
    return;
  }
  if (self.sampling_ || self.counting_ || self.replaying_) self.sample_contexts(domain, cbid, data);
  if (self.sampling_ && domain != cupti::Domain::kResource) self.sample_launch(domain, cbid, data);
  if (domain == cupti::Domain::kResource && cbid == static_cast<std::uint32_t>(cupti::Resource::kContextCreated)) {
    try {
      self.start_thread();
    } catch (...) {
      gpu::count_loss(
          LossKind::kInternalError, 1,
          "No thread for GPU records could be started (see ulimit -u), so GPU work is folded at the end only.");
    }
    return;
  }
  self.callbacks_.handle(domain, cbid, data);
}

// Regions and phases only: what lies between two API calls outside of them is charged to the call it leads to.
void Measuring::on_place_changed(const leadline_event* event, void* user) {
  auto& self = *static_cast<Measuring*>(user);
  if (event->phase == LEADLINE_INSTANT || !self.callbacks_.is_open()) return;
  const std::int64_t now = leadline_monitor_now();
  event->phase == LEADLINE_BEGIN ? self.callbacks_.api().region_begins(now, leadline_monitor_context())
                                 : self.callbacks_.api().region_ends(now);
}

void Measuring::on_activity(const leadline_event* event, void* user) {
  const leadline_gpu_activity_event& told = event->of.gpu_activity;
  const bool is_copy = told.event_kind == static_cast<std::uint8_t>(EventKind::kCopy);
  if (told.duration_ns == LEADLINE_TOLD_BEFORE && !is_copy) return;  // recordings hold no samples
  const auto is = [&](MetricKind metric) { return told.measures[0].metric == gpu::number(metric); };
  if (told.measure_count > 0 && is(MetricKind::kCountedTime)) return;  // a kernel that was replayed
  if (told.name == nullptr && told.measure_count == 1 &&
      (is(MetricKind::kSyncRunningTime) || is(MetricKind::kDeviceAllocBytes) || is(MetricKind::kDeviceFreeBytes))) {
    return;  // measured around the call itself, which a recording of CUPTI's records cannot repeat
  }
  static_cast<Measuring*>(user)->recorder_->folded(event->of.gpu_activity);
}

// Looks for full buffers now and then; a CUPTI that hands over none by itself is asked each flush interval.
void Measuring::run() {
  flushes_itself_ = subscription_.flush_every(options_.flush_interval_s);
  learn_devices();
  constexpr double kLookS = 0.05;
  const auto look = duration<double>(std::min(kLookS, options_.flush_interval_s));
  const auto interval = std::chrono::duration_cast<steady_clock::duration>(duration<double>(options_.flush_interval_s));
  auto next_flush = steady_clock::now() + interval;
  std::unique_lock lock(wake_mutex_);
  while (!ending_) {
    wake_.wait_for(lock, look);
    if (ending_) break;
    lock.unlock();
    buffers_->prepare();
    rest_if_paused_long();
    const bool flush_now = steady_clock::now() >= next_flush;
    if (flush_now && !flushes_itself_ && !rests_.load(std::memory_order_relaxed) &&
        !fatal_.load(std::memory_order_relaxed)) {
      flushing_since_ns_.store(waiting_clock(), std::memory_order_relaxed);
      subscription_.flush(false);
      flushing_since_ns_.store(0, std::memory_order_relaxed);
    }
    if (flush_now) next_flush = steady_clock::now() + interval;
    if (flush_now || ready_.exchange(false, std::memory_order_acq_rel)) drain();
    follow_launches_that_are_missed();
    lock.lock();
  }
}

void Measuring::drain() {
  learn_devices();
  const std::lock_guard lock(fold_mutex_);
  const std::int64_t begin = leadline_monitor_now();
  if (const gpu::ClockRelation now = gpu::measure_clock(cupti_clock(library_.call())); now.known) clock_ = now;
  gpu::settled([this] {
    buffers_->drain([this](const gpu::FullBuffer& full) { fold_buffer(full); });
    const std::int64_t settled_ns = tables_.launches.watermark();
    settle_samples(settled_ns);  // first: it tells of times in which kernels were replayed, which are not idle
    fold_.settle_before(settled_ns);
  });
  fold_ns_ += leadline_monitor_now() - begin;
}

void Measuring::fold_buffer(const gpu::FullBuffer& full) {
  cupti::Record* record = nullptr;
  while (subscription_.next_record(full.data, full.valid_bytes, &record) == cupti::kSuccess) {
    const gpu::Work work = decode(*record, version_, clock_.offset_ns);
    if (work.kind == gpu::WorkKind::kNone) continue;
    if (recorder_) recorder_->work(work);
    fold_.add_or_lose(work);
  }
  const std::uint64_t dropped = subscription_.dropped_records(full.context, full.stream);
  dropped_ += dropped;
  gpu::count_loss(LossKind::kGpuRecordsDropped, dropped, "CUPTI dropped records because it had no room for them.");
}

bool Measuring::flush(double timeout_s) {
  return gpu::await_records(tables_.launches, timeout_s, [this] { return fetch(); });
}

// False: CUPTI hands over no more.
bool Measuring::fetch() {
  if (fatal_.load(std::memory_order_relaxed)) return false;
  if (!ask("asked for its records", [this] { subscription_.flush(false); })) return false;
  drain();
  return true;
}

// CUPTI, by a thread that may be left behind. False: it does not answer, now or before, and nothing more is asked.
bool Measuring::ask(const char* what, std::function<void()> calls) {
  const std::int64_t since = flushing_since_ns_.load(std::memory_order_relaxed);
  const std::int64_t limit = std::chrono::nanoseconds(limit_).count();
  const bool hung = since != 0 && waiting_clock() - since > limit;
  if (!hangs_.load(std::memory_order_relaxed) && !hung && asking_.run(std::move(calls), limit_)) return true;
  if (!hangs_.exchange(true)) {
    fatal_.store(true, std::memory_order_relaxed);
    const std::string said = std::string("CUPTI did not answer in time when it was ") + what +
                             ", so GPU work is not measured from here on, and what it had not handed over is missing; "
                             "the program continues without it.";
    gpu::count_loss(LossKind::kProviderUnavailable, 1, said.c_str());
  }
  return false;
}

bool Measuring::finalize() {
  // Before 12.6 CUPTI may crash when it is taken down after CUDA graphs; others may share it; a lost device took it
  // already.
  if (!library_.call().finalize || fatal_.load() || subscription_.mode() == SubscriptionMode::kShared) return false;
  if (callbacks_.graphs_seen() && version_ < cupti::kVersion12_6) return false;
  const std::vector<ApiCall>& calls = calls_.calls(cupti::Domain::kDriver);
  const auto idle_call =
      std::find_if(calls.begin(), calls.end(), [](const ApiCall& c) { return c.name == "cuDriverGetVersion"; });
  if (idle_call == calls.end()) return false;
  const auto cbid = static_cast<std::uint32_t>(idle_call - calls.begin());
  if (!subscription_.enable_one(cupti::Domain::kDriver, cbid, true)) return false;
  finalizing_here = true;
  driver_.cuda_version();
  finalizing_here = false;
  return finalized_.load();
}

// Each step is left out where CUPTI has ceased to answer: a program must end whatever its vendor's library does.
void Measuring::stop() {
  const auto alive = [this] { return !fatal_.load(std::memory_order_relaxed); };
  if (alive()) gpu::await_work(tables_.launches, options_.wait_at_stop_s, [this] { return fetch(); });
  callbacks_.close();
  if (places_ != 0) leadline_monitor_unregister(places_);
  places_ = 0;
  if (alive()) ask("asked to call back no more", [this] { subscription_.disable_callbacks(); });
  InCallback::wait(kPatience);
  // What a call that is not back works on is not let go of.
  const bool samples_back = !sampling_ || !alive() || sampler_->stop();
  const bool counters_back = !counting_ || !alive() || counters_->stop();
  const bool replay_back = !replaying_ || !alive() || replay_->stop();
  bool back = samples_back && counters_back && replay_back;
  {
    std::unique_lock lock(wake_mutex_);
    ending_ = true;
    wake_.notify_all();
    const auto until = std::chrono::system_clock::now() + limit_;
    while (thread_.joinable() && !ended_ && wake_.wait_until(lock, until) != std::cv_status::timeout) {
    }
    if (thread_.joinable() && !ended_) {
      thread_.detach();
      back = false;
      lock.unlock();
      if (alive()) ask("asked for its records", [] {});
    }
  }
  if (thread_.joinable()) thread_.join();
  if (alive() && ask("asked for its last records", [this] { subscription_.flush(true); })) {
    drain();
    ask("told to stop", [this, counters_back, replay_back, back] {
      if (flushes_itself_) subscription_.flush_every(0);
      subscription_.stop_activity();
      subscription_.flush(true);  // what threads have launched meanwhile
      if (counting_ && counters_back) counters_->release();
      if (replaying_ && replay_back) replay_->release();
      back&& finalize() ? subscription_.forget() : subscription_.close();
    });
  }
  if (alive()) drain();
  InCallback::forget(this);
  left_alone_ = InCallback::wait(kPatience) && back && !asking_.is_stuck();
  {
    const std::lock_guard lock(fold_mutex_);
    gpu::settled([this] {
      settle_samples(INT64_MAX);
      fold_.finish();
    });
  }
  keep_what_cupti_holds();
  if (activities_ != 0) leadline_monitor_unregister(activities_);
  activities_ = 0;
  callbacks_.set_recorder(nullptr);
  recorder_.reset();
  describe_devices();
  if (sampling_ && sampler_->records() != SampledRecords::kAll && sampler_->details().message.empty()) {
    gpu::count_loss(
        LossKind::kProviderUnavailable, 1,
        sampler_->records() == SampledRecords::kNone
            ? "Kernels, copies and sets of memory have no times in a run that samples instructions, since "
              "CUPTI cannot take samples and record kernels at the same time; run once without --instructions for them."
            : "Copies and sets of memory on the device are not measured in a run that samples "
              "instructions, since CUPTI records only kernels while it samples; run once without "
              "--instructions for them.");
  }
  const std::uint64_t outstanding = tables_.launches.outstanding();
  gpu::count_loss(LossKind::kGpuWorkUnfinished, outstanding > dropped_ ? outstanding - dropped_ : 0,
                  "Some device work had not finished, or gave no record, when measuring stopped.");
}

void Measuring::abandon(leadline_subscription* places, leadline_subscription* activities) noexcept {
  *places = std::exchange(places_, 0);
  *activities = std::exchange(activities_, 0);
  callbacks_.close();
  InCallback::after_fork();
  subscription_.forget();
  asking_.abandon();
  if (sampling_) sampler_->abandon();
  if (counting_) counters_->windows().abandon();
  if (replaying_) replay_->abandon();
  if (thread_.joinable()) thread_.detach();  // it does not exist in this process
}

}  // namespace leadline::nvidia
