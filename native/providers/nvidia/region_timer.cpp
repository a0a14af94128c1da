#include "providers/nvidia/region_timer.h"

#include <algorithm>
#include <memory>
#include <new>
#include <utility>

#include "base/ids.h"
#include "gpu/measure.h"

namespace leadline::nvidia {

// Open regions of the calling thread; deeper ones are not timed.
struct RegionTimer::OpenRegions {
  struct Open {
    cuda::Event begin = nullptr;
    leadline_context context = 0;
    std::int64_t begin_ns = 0;
  };
  std::array<Open, 64> open{};
  std::uint32_t depth = 0;
  const RegionTimer* timer = nullptr;
  std::uint32_t stretch = 0;  // of the timer
};
namespace {

// On the heap: thread-local memory of a library that is loaded late comes from a small reserve of the C library (1.6
// KB), which torch's own libraries need too.
thread_local std::unique_ptr<RegionTimer::OpenRegions> regions;

// The calling thread's, made when it opens its first region; nullptr where there is no memory.
RegionTimer::OpenRegions* regions_of_thread() noexcept {
  if (!regions) regions.reset(new (std::nothrow) RegionTimer::OpenRegions);
  return regions.get();
}

// Asking and recording events must not disturb a capture of this thread in its strict mode.
class RelaxedCapture {
 public:
  explicit RelaxedCapture(const DriverFunctions& driver) : driver_(driver) { exchange(); }
  ~RelaxedCapture() { exchange(); }

 private:
  void exchange() {
    if (driver_.exchange_capture_mode) driver_.exchange_capture_mode(&mode_);
  }
  const DriverFunctions& driver_;
  std::int32_t mode_ = cuda::kCaptureModeRelaxed;
};

}  // namespace

RegionTimer::~RegionTimer() { stop(); }

bool RegionTimer::start(bool paused) {
  const DriverFunctions& call = driver_.call();
  if (!call.event_create || !call.event_record || !call.event_query || !call.event_elapsed || !call.context_current ||
      !call.stream_is_capturing) {
    return false;
  }
  return paused || listen();
}

bool RegionTimer::listen() {
  return leadline_monitor_register(LEADLINE_DOMAIN_REGION, on_region, this, &subscription_) == LEADLINE_OK;
}

void RegionTimer::pause() {
  if (subscription_ != 0) leadline_monitor_unregister(subscription_);
  subscription_ = 0;
  stretch_.fetch_add(1, std::memory_order_relaxed);
}

void RegionTimer::resume() {
  if (subscription_ == 0 && !listen()) {
    gpu::count_loss(LossKind::kProviderUnavailable, 1,
                    "Regions are no longer timed on the GPU, because the monitor has no room for another subscriber.");
  }
}

leadline_subscription RegionTimer::abandon() noexcept {
  abandoned_.store(true, std::memory_order_relaxed);
  return std::exchange(subscription_, 0);
}

void RegionTimer::on_region(const leadline_event* event, void* user) {
  if (event->of.region.kind == LEADLINE_REGION_STEP) return;
  auto& timer = *static_cast<RegionTimer*>(user);
  if (timer.abandoned_.load(std::memory_order_relaxed)) return;
  if (event->phase == LEADLINE_BEGIN) timer.begin(*event);
  if (event->phase == LEADLINE_END) timer.end();
}

cuda::Event RegionTimer::record() {
  const DriverFunctions& call = driver_.call();
  cuda::Context context = nullptr;
  if (call.context_current(&context) != cuda::kSuccess || !context) return nullptr;  // no GPU work on this thread yet
  const RelaxedCapture relaxed(call);
  std::int32_t capturing = 0;
  if (call.stream_is_capturing(nullptr, &capturing) != cuda::kSuccess || capturing != cuda::kCaptureStatusNone)
    return nullptr;
  cuda::Event event = nullptr;
  {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (lock && !spare_.empty()) {
      event = spare_.back();
      spare_.pop_back();
    }
  }
  if (!event && call.event_create(&event, cuda::kEventDefault) != cuda::kSuccess) return nullptr;
  if (call.event_record(event, nullptr) != cuda::kSuccess) {
    if (call.event_destroy) call.event_destroy(event);
    return nullptr;
  }
  return event;
}

void RegionTimer::begin(const leadline_event& event) {
  OpenRegions* const mine = regions_of_thread();
  if (mine == nullptr) return;
  // What another timer, or this one before a pause, saw begin is not told to end.
  if (const std::uint32_t now = stretch_.load(std::memory_order_relaxed); mine->timer != this || mine->stretch != now) {
    if (mine->timer == this) forget(*mine);
    mine->depth = 0;
    mine->timer = this;
    mine->stretch = now;
  }
  if (mine->depth < mine->open.size()) mine->open[mine->depth] = {record(), leadline_monitor_context(), event.time_ns};
  ++mine->depth;
}

void RegionTimer::end() {
  OpenRegions* const mine = regions.get();
  if (mine == nullptr || mine->timer != this || mine->stretch != stretch_.load(std::memory_order_relaxed)) return;
  if (mine->depth == 0) return;
  if (--mine->depth >= mine->open.size()) return;
  const OpenRegions::Open open = mine->open[mine->depth];
  if (!open.begin) return;
  cuda::Event end = record();
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!end || !lock || pending_.size() >= kOpen) {
    driver_.call().event_destroy(open.begin);  // the driver keeps it until it has completed
    if (end) driver_.call().event_destroy(end);
    gpu::count_loss(LossKind::kGpuRecordsDropped, 1,
                    "Some regions were not timed on the GPU because too many were open at once.");
    return;
  }
  std::int32_t device = 0;
  if (driver_.call().context_device) driver_.call().context_device(&device);
  pending_.push_back({open.begin, end, open.context, open.begin_ns, device});
}

// The driver keeps the events until they have completed.
void RegionTimer::forget(OpenRegions& of) {
  for (std::uint32_t i = 0; i < std::min<std::size_t>(of.depth, of.open.size()); ++i) {
    if (of.open[i].begin) driver_.call().event_destroy(of.open[i].begin);
  }
}

void RegionTimer::give_back(cuda::Event event) { spare_.push_back(event); }

void RegionTimer::collect() {
  const DriverFunctions& call = driver_.call();
  const RelaxedCapture relaxed(call);
  std::vector<Pending> done;
  {
    const std::lock_guard lock(mutex_);
    const auto first_done = std::stable_partition(
        pending_.begin(), pending_.end(), [&](const Pending& p) { return call.event_query(p.end) != cuda::kSuccess; });
    done.assign(first_done, pending_.end());
    pending_.erase(first_done, pending_.end());
  }
  for (const Pending& region : done) {
    float elapsed_ms = 0;
    if (call.event_elapsed(&elapsed_ms, region.begin, region.end) == cuda::kSuccess) {
      ++timed_;
      const auto duration_ns = static_cast<std::int64_t>(static_cast<double>(elapsed_ms) * 1e6);
      leadline_event event = gpu::activity_event(region.context, region.begin_ns + duration_ns);
      leadline_gpu_activity_event& activity = event.of.gpu_activity;
      activity.frame_kind = static_cast<std::uint8_t>(FrameKind::kKernel);
      activity.event_kind = static_cast<std::uint8_t>(EventKind::kKernel);
      activity.name = "default stream (CUDA events)";
      activity.detail = "{\"method\": \"CUDA events\", \"covers\": \"the default stream\"}";
      activity.device = region.device;
      activity.start_ns = region.begin_ns;
      activity.duration_ns = duration_ns;
      leadline_monitor_emit(&event);
    }
    const std::lock_guard lock(mutex_);
    give_back(region.begin);
    give_back(region.end);
  }
}

void RegionTimer::stop() {
  if (abandoned_) return;
  pause();
  collect();
  const std::lock_guard lock(mutex_);
  for (cuda::Event event : spare_) driver_.call().event_destroy(event);
  spare_.clear();
  for (const Pending& region : pending_) {  // the driver keeps them until they have completed
    driver_.call().event_destroy(region.begin);
    driver_.call().event_destroy(region.end);
  }
  if (!pending_.empty()) {
    gpu::count_loss(LossKind::kGpuRecordsDropped, pending_.size(),
                    "Some regions had not ended on the GPU when measuring stopped.");
  }
  pending_.clear();
}

}  // namespace leadline::nvidia
