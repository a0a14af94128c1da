#include "providers/amd/measuring.h"

#include <bit>
#include <chrono>
#include <utility>

#include "base/ids.h"
#include "base/own_thread.h"
#include "gpu/await_records.h"
#include "gpu/in_callback.h"
#include "gpu/measure.h"
#include "providers/amd/older_roctx.h"
#include "providers/amd/records.h"
#include "providers/amd/roctracer.h"
#include "providers/amd/sdk_library.h"

namespace leadline::amd {
namespace {

using InCallback = gpu::InCallback<Measuring>;
using std::chrono::duration;

constexpr std::chrono::milliseconds kPatience{100};  // for callbacks that are running
std::atomic<bool> sdk_ended{false};

auto clock_of(const Source& source) {
  return [&source](std::uint64_t* ns) { return source.timestamp(ns); };
}

}  // namespace

Measuring::Measuring(const Options& options, Source& source)
    : options_(options),
      source_(source),
      graphs_(tables_.graphs),
      callbacks_(source.names(), source.streams(), source.host_memory(), graphs_, tables_),
      fold_(tables_.launches, tables_.graphs, gpu::kernel_sources(), source.vendor()),
      sampler_(options.instructions.empty() ? nullptr : source.sampler()),
      counters_(options.gpu_metrics.empty() ? nullptr : source.counters()) {
  if (!source.asks()) callbacks_.keep_streams();
  if (source.late()) source.host_memory().miss();
  make_windows();
}

Measuring::~Measuring() { InCallback::forget(this); }

void Measuring::sdk_is_ending() noexcept {
  sdk_ended.store(true, std::memory_order_relaxed);
  const InCallback self;
  if (self) self->callbacks().calls().close();
}

bool Measuring::sdk_has_ended() noexcept { return sdk_ended.load(std::memory_order_relaxed); }

bool Measuring::start(std::string* message, bool paused) {
  clock_ = gpu::measure_clock(clock_of(source_));
  if (!clock_.known) {
    *message =
        std::string(source_.name()) + " (" + source_.path() + ") does not report its time, so GPU work is not measured";
    return false;
  }
  if (!options_.recording.empty()) {
    std::string why;
    recorder_ = gpu::Recorder::create(options_.recording, std::string(source_.name()) + " " + source_.version(), &why);
    if (recorder_) {
      callbacks_.calls().set_recorder(recorder_.get());
      leadline_monitor_register(LEADLINE_DOMAIN_GPU_ACTIVITY, on_activity, this, &activities_);
    } else {
      gpu::count_loss(LossKind::kProviderUnavailable, 1, why.c_str());
    }
  }
  fold_.follow_kernels(windows_ ? &sampler_->samples() : nullptr, counting_windows_ ? &counters_->samples() : nullptr,
                       nullptr);
  fold_.follow_scratch(&scratch_);
  each_window([](gpu::SamplingWindows& windows) { windows.begin(leadline_monitor_now()); });
  paused ? pause() : resume();
  InCallback::use(this);
  follow_older_roctx();
  return true;
}

void Measuring::pause() {
  callbacks_.calls().pause();
  each_window([](gpu::SamplingWindows& windows) { windows.pause(); });
  if (places_ != 0) leadline_monitor_unregister(places_);
  places_ = 0;
  const std::lock_guard lock(fold_mutex_);
  const std::int64_t now = leadline_monitor_now();
  fold_.pause(now);
  scratch_.pause(now);
  if (recorder_) recorder_->pause(true, now);
}

void Measuring::resume() {
  {
    const std::lock_guard lock(fold_mutex_);
    const std::int64_t now = leadline_monitor_now();
    fold_.resume(now);
    scratch_.resume(now);
    if (recorder_) recorder_->pause(false, now);
  }
  if (places_ == 0) leadline_monitor_register(LEADLINE_DOMAIN_REGION, on_place_changed, this, &places_);
  callbacks_.calls().open();
  each_window([](gpu::SamplingWindows& windows) { windows.resume(); });
}

void Measuring::make_thread() noexcept {
  try {
    const std::lock_guard lock(wake_mutex_);
    if (!ending_ && !thread_.joinable()) thread_ = own_thread([this] { run(); });
    each_window([](gpu::SamplingWindows& windows) { windows.start_thread(); });
  } catch (...) {
    gpu::count_loss(
        LossKind::kInternalError, 1,
        "No thread for GPU records could be started (see ulimit -u), so GPU work is folded at the end only.");
  }
}

// What the SDK says of the devices; before any record of theirs is folded. Under fold_mutex_. False: there was no
// memory for it, and the next time may do.
bool Measuring::learn_devices() noexcept {
  if (agents_ && !agents_->gpus().empty()) return true;
  try {
    agents_ = &source_.agents();
    std::vector<gpu::DeviceInfo> devices;
    for (const GpuAgent& gpu : agents_->gpus()) devices.push_back(gpu.info);
    fold_.describe(devices);
    if (recorder_) recorder_->devices(devices);
    describe_devices();
    tell_contradiction();
    return true;
  } catch (...) {
    agents_ = nullptr;
    return false;
  }
}

void Measuring::tell_contradiction() noexcept {
  if (contradiction_told_ || agents_ == nullptr || agents_->contradiction().empty()) return;
  contradiction_told_ = true;
  gpu::count_loss(LossKind::kProviderUnavailable, 1, agents_->contradiction().c_str());
}

template <class Each>
void Measuring::fold_each(std::uint64_t count, std::uint64_t dropped, const Each& each) noexcept {
  const std::lock_guard lock(fold_mutex_);
  const std::int64_t begin = leadline_monitor_now();
  const bool known = learn_devices();
  if (!known) {  // whose work it is cannot be told
    dropped_ += count;
    gpu::count_loss(LossKind::kGpuRecordsDropped, count,
                    "There was no memory to learn of the devices before their first records came.");
  }
  if (const gpu::ClockRelation now = gpu::measure_clock(clock_of(source_)); now.known) clock_ = now;
  static const Agents kNone;
  if (known) each(Decoder{agents_ ? *agents_ : kNone, source_.kernels(), graphs_, clock_.offset_ns});
  dropped_ += dropped;
  gpu::count_loss(LossKind::kGpuRecordsDropped, dropped,
                  "rocprofiler-sdk dropped records because it had no room for them.");
  fold_ns_ += leadline_monitor_now() - begin;
}

void Measuring::take(const gpu::Work& work) noexcept {
  if (work.kind == gpu::WorkKind::kNone) return;
  if (recorder_) recorder_->work(work);
  fold_.add_or_lose(work);
}

void Measuring::fold(sdk::RecordHeader** headers, std::size_t count, std::uint64_t dropped) noexcept {
  fold_each(count, dropped, [&](const Decoder& decode) {
    for (std::size_t i = 0; i < count; ++i) {
      const sdk::RecordHeader& header = *headers[i];
      if (header.category != sdk::Category::kTracing || !header.payload) continue;
      const auto kind = static_cast<std::int32_t>(header.kind);
      if (kind == source_.names().dispatch) {
        take(decode.dispatch(*static_cast<const sdk::DispatchRecord*>(header.payload)));
      } else if (kind == source_.names().copy) {
        take(decode.copy(*static_cast<const sdk::CopyRecord*>(header.payload)));
      } else if (kind == source_.names().scratch) {
        const auto change = decode.scratch(*static_cast<const sdk::ScratchRecord*>(header.payload));
        if (change) scratch_.changed(*change);
      }
    }
  });
}

void Measuring::fold_traced(const char* begin, const char* end) noexcept {
  const auto& tracer = static_cast<const Roctracer&>(source_);
  const CallStreams* const streams = callbacks_.call_streams();
  const auto* const first = reinterpret_cast<const tracer::Record*>(begin);
  const auto* const last = reinterpret_cast<const tracer::Record*>(end);
  if (streams == nullptr || first >= last) return;
  fold_each(static_cast<std::uint64_t>(last - first), 0, [&](const Decoder& decode) {
    for (const tracer::Record* at = first; at != nullptr && at < last; at = tracer.next(at)) {
      const gpu::Work work = decode.traced(*at, tracer.work_name(*at), *streams);
      const bool is_kernel = work.kind == gpu::WorkKind::kKernel;
      const std::uint32_t graph = is_kernel ? graphs_.of_launch(work.correlation) : 0;
      graph == 0 ? take(work) : take_of_graph(work, graph);
    }
    traced_graphs_.buffer_ended([this](const gpu::Work& work) { take(work); });
  });
}

void Measuring::take_of_graph(const gpu::Work& work, std::uint32_t graph) noexcept {
  try {
    traced_graphs_.add(work, graph, graphs_.nodes_of(graph), [this](const gpu::Work& one) { take(one); });
  } catch (...) {
    take(work);  // no memory to keep it: it stands below its launch
  }
}

void Measuring::on_place_changed(const leadline_event* event, void* user) {
  auto& self = *static_cast<Measuring*>(user);
  gpu::ApiCalls& calls = self.callbacks_.calls();
  if (event->phase == LEADLINE_INSTANT || !calls.is_open()) return;
  const std::int64_t now = leadline_monitor_now();
  event->phase == LEADLINE_BEGIN ? calls.region_begins(now, leadline_monitor_context()) : calls.region_ends(now);
}

void Measuring::on_activity(const leadline_event* event, void* user) {
  const leadline_gpu_activity_event& told = event->of.gpu_activity;
  const auto is = [&](MetricKind metric) { return told.measures[0].metric == gpu::number(metric); };
  if (told.name == nullptr && told.measure_count == 1 &&
      (is(MetricKind::kSyncRunningTime) || is(MetricKind::kSyncTime) || is(MetricKind::kDeviceAllocBytes) ||
       is(MetricKind::kDeviceFreeBytes))) {
    return;  // measured around the call itself, which a recording of records cannot repeat
  }
  const bool is_of_scratch =
      told.event_kind == static_cast<std::uint8_t>(EventKind::kScratch) ||
      (told.measure_count > 0 && (is(MetricKind::kScratchAllocBytes) || is(MetricKind::kScratchFreeBytes)));
  if (is_of_scratch) return;  // a recording holds the work of a device only
  static_cast<Measuring*>(user)->recorder_->folded(told);
}

void Measuring::settle() {
  const std::lock_guard lock(fold_mutex_);
  const std::int64_t settled_ns = tables_.launches.watermark();
  gpu::settled([&] {
    fold_.settle_before(settled_ns);
    settle_samples(settled_ns);
    settle_scratch(settled_ns);
  });
}

// Under fold_mutex_.
void Measuring::settle_scratch(std::int64_t until_ns) {
  scratch_.settle(until_ns, [this](const gpu::ScratchChange& change, const gpu::KernelRun* run,
                                   const std::string* mangled) { fold_.tell_scratch(change, run, mangled); });
}

void Measuring::run() {
  const auto interval = duration<double>(options_.flush_interval_s);
  std::unique_lock lock(wake_mutex_);
  for (std::uint64_t turn = 1; !ending_; ++turn) {
    wake_.wait_for(lock, interval);
    if (ending_) break;
    lock.unlock();
    if (std::has_single_bit(turn)) follow_older_roctx();  // loaded when the program pleases
    if (!sdk_has_ended()) source_.flush();
    settle();
    look_for_silence(false);
    lock.lock();
  }
}

// A profile must never be empty without a word.
void Measuring::look_for_silence(bool at_end) {
  std::uint64_t records = 0;
  {
    const std::lock_guard lock(fold_mutex_);
    records = fold_.counters().records;
  }
  if (silence_told_ || records > 0 || callbacks_.launches() == 0) return;
  const std::int64_t now = leadline_monitor_now();
  if (silent_since_ns_ == 0) silent_since_ns_ = now;
  const auto patience = static_cast<std::int64_t>(options_.patience_s * 1e9);
  if (!at_end && now - silent_since_ns_ < patience) return;
  silence_told_ = true;
  gpu::count_loss(LossKind::kProviderUnavailable, 1, why_silent().c_str());
}

std::string Measuring::why_silent() const {
  const std::string seen = std::to_string(callbacks_.launches()) +
                           " HIP launches were seen, but no record of a kernel came, so GPU time is not measured: ";
  const std::vector<std::string> copies = loaded_sdk_copies();
  if (copies.size() > 1) {
    return seen + "two copies of rocprofiler-sdk are in this process (" + copies[0] + " and " + copies[1] +
           "), which do not see each other's kernels; remove one.";
  }
  if (!source_.asks()) {
    return seen +
           "roctracer handed over none, as where another tool (torch.profiler, rocprof) has taken its one place, or "
           "the "
           "ROCm of this program is another than roctracer's.";
  }
  if (callbacks_.requests() == 0) {
    return seen + (source_.late()
                       ? "HIP had started before Leadline was its tool; start the program with `leadline run`."
                       : "rocprofiler-sdk does not see the queues of this program, as where HSA had started "
                         "before it or another tool holds them; see `leadline doctor`.");
  }
  return seen + "rocprofiler-sdk received " + std::to_string(callbacks_.requests()) +
         " pieces of work and reported none; see its own messages with ROCPROFILER_LOG_LEVEL=info.";
}

bool Measuring::flush(double timeout_s) {
  return gpu::await_records(tables_.launches, timeout_s, [this] { return fetch(); });
}

// False: the SDK hands over no more.
bool Measuring::fetch() {
  if (sdk_has_ended()) return false;
  source_.flush();
  settle();
  return true;
}

void Measuring::stop() {
  gpu::await_work(tables_.launches, options_.wait_at_stop_s, [this] { return fetch(); });
  callbacks_.calls().close();
  if (places_ != 0) leadline_monitor_unregister(places_);
  places_ = 0;
  // Its thread must end before what it looks at does, whether the SDK has ended or not.
  each_window([](gpu::SamplingWindows& windows) { windows.stop(); });
  {
    const std::lock_guard lock(wake_mutex_);
    ending_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
  if (!sdk_has_ended()) source_.flush();
  look_for_silence(true);
  if (!sdk_has_ended()) source_.rest();
  leave_older_roctx();
  InCallback::forget(this);
  source_.host_memory().miss();  // what is locked from here on
  left_alone_ = InCallback::wait(kPatience);
  {
    const std::lock_guard lock(fold_mutex_);
    if (callbacks_.calls().count() > 0) learn_devices();  // lists that hide all of them let no record come
    traced_graphs_.finish([this](const gpu::Work& work) { take(work); });
    gpu::settled([this] {
      settle_samples(INT64_MAX);
      settle_scratch(INT64_MAX);
      fold_.finish();
    });
  }
  if (activities_ != 0) leadline_monitor_unregister(activities_);
  activities_ = 0;
  callbacks_.calls().set_recorder(nullptr);
  recorder_.reset();
  describe_devices();
  const std::uint64_t outstanding = tables_.launches.outstanding();
  gpu::count_loss(LossKind::kGpuWorkUnfinished, outstanding > dropped_ ? outstanding - dropped_ : 0,
                  "Some device work had not finished, or gave no record, when measuring stopped.");
}

void Measuring::abandon(leadline_subscription* places, leadline_subscription* activities) noexcept {
  *places = std::exchange(places_, 0);
  *activities = std::exchange(activities_, 0);
  callbacks_.calls().close();
  InCallback::after_fork();
  each_window([](gpu::SamplingWindows& windows) { windows.abandon(); });
  if (thread_.joinable()) thread_.detach();  // it does not exist in this process
}

}  // namespace leadline::amd
