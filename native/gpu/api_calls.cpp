#include "gpu/api_calls.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/clock.h"
#include "base/ids.h"
#include "gpu/measure.h"
#include "gpu/recording.h"

namespace leadline::gpu {
namespace {

// A call that lasts longer is itself what the thread did while a device waited: an allocation, loading of code.
// Launches take less, and leave no border between regions.
constexpr std::int64_t kLongCallNs = 20'000;

// One per thread; plain data, so that it needs no destruction and may be touched at any time of a thread's life.
struct ThreadState {
  std::uint32_t session = 0;
  std::uint32_t depth = 0;        // nested API calls
  std::uint32_t stretch = 0;      // when the outermost began, see ApiCalls::state_
  std::uint32_t correlation = 0;  // of the outermost
  std::int64_t start_ns = 0;
  std::int64_t cpu_ns = 0;  // CPU time of the thread when its wait began
  leadline_context context = 0;
  leadline_gpu_api_event event{};  // what BEGIN said, for END
  bool captured = false;           // the call became a graph node: nothing runs now
  const LaunchLog* log = nullptr;  // where `place` is its own; null: ask LogOfThread
  std::uint32_t place = LaunchLog::kNone;
  // Regions that are open, outermost first, of the stretch in which they began.
  std::uint32_t regions_of = 0;
  std::uint32_t region_count = 0;
  std::array<leadline_context, 32> regions{};
  bool ends = false;  // the thread's objects are gone
};
// Each look at a thread's variable of a library that was loaded late is a call of the loader's, and a launch has some
// twenty of them; of a variable of this model there is room for few bytes, so it is the address.
thread_local constinit ThreadState state_of_thread;
constinit __attribute__((tls_model("initial-exec"))) thread_local ThreadState* known_state = nullptr;

ThreadState& state() noexcept {
  if (known_state == nullptr) [[unlikely]]
    known_state = &state_of_thread;
  return *known_state;
}

// The calling thread's. A call may begin in one session and end in the next, or never be told to end: what is left of
// it must not make the thread's further calls look like inner ones.
ThreadState& state_in(std::uint32_t session) noexcept {
  ThreadState& mine = state();
  if (mine.session != session) {
    const bool ends = mine.ends;
    mine = {};
    mine.session = session;
    mine.ends = ends;
  }
  return mine;
}

// Gives the thread's place in the log back when the thread ends. It shares the log, since a thread may outlive the
// measuring that the log belongs to.
struct LogOfThread {
  std::shared_ptr<LaunchLog> log;
  std::uint32_t place = LaunchLog::kNone;
  std::uint32_t get(const std::shared_ptr<LaunchLog>& of) noexcept {
    if (log != of) {
      if (log) log->give_back(place);
      log = of;
      place = of->take();
    }
    return place;
  }
  ~LogOfThread() {
    if (log) log->give_back(place);
    state().log = nullptr;
    state().ends = true;
  }
};
thread_local LogOfThread log_of_thread;

bool waits(leadline_gpu_kind kind) { return kind == LEADLINE_GPU_SYNC; }

void end_call(const leadline_gpu_api_event& call, std::int64_t time_ns) noexcept {
  leadline_event event{};
  event.domain = LEADLINE_DOMAIN_GPU_API;
  event.phase = LEADLINE_END;
  event.time_ns = time_ns;
  event.of.gpu_api = call;
  leadline_monitor_emit(&event);
}

}  // namespace

std::uint32_t ApiCalls::next_session() noexcept {
  static std::atomic<std::uint32_t> sessions{0};
  return sessions.fetch_add(1, std::memory_order_relaxed) + 1;
}

std::uint32_t ApiCalls::place_in_log() noexcept {
  ThreadState& mine = state();
  const std::shared_ptr<LaunchLog>& log = tables_.launches.log();
  if (mine.log != log.get()) [[unlikely]] {
    if (mine.ends) return LaunchLog::kNone;
    mine.place = log_of_thread.get(log);
    mine.log = log.get();  // which lives as long as LogOfThread holds it
  }
  return mine.place;
}

leadline_context ApiCalls::region() const noexcept {
  const ThreadState& mine = state_in(session_.load(std::memory_order_relaxed));
  if (mine.region_count == 0 || mine.regions_of != state_.load(std::memory_order_relaxed)) return 0;
  return mine.regions[std::min<std::size_t>(mine.region_count, mine.regions.size()) - 1];
}

void ApiCalls::put_place(std::int64_t time_ns, leadline_context context) noexcept {
  const std::uint32_t thread = place_in_log();
  tables_.launches.place(thread, time_ns, context);
  if (Recorder* to = recorder()) to->mark(thread, time_ns, context);
}

void ApiCalls::region_begins(std::int64_t time_ns, leadline_context context) noexcept {
  ThreadState& mine = state_in(session_.load(std::memory_order_relaxed));
  const std::uint32_t present = state_.load(std::memory_order_relaxed);
  if (mine.regions_of != present) mine.region_count = 0;  // ends may have gone by unseen
  mine.regions_of = present;
  if (mine.region_count < mine.regions.size()) mine.regions[mine.region_count] = context;
  ++mine.region_count;
  put_place(time_ns, context);
}

void ApiCalls::region_ends(std::int64_t time_ns) noexcept {
  ThreadState& mine = state_in(session_.load(std::memory_order_relaxed));
  if (mine.region_count > 0) --mine.region_count;
  put_place(time_ns, region());
}

ApiCalls::Open ApiCalls::open_call() const noexcept {
  const ThreadState& thread = state_in(session_.load(std::memory_order_relaxed));
  if (thread.depth == 0) return {};
  return {thread.context, static_cast<leadline_gpu_kind>(thread.event.kind), thread.correlation, true};
}

void ApiCalls::captured() noexcept { state_in(session_.load(std::memory_order_relaxed)).captured = true; }

bool ApiCalls::is_outermost() const noexcept { return state_in(session_.load(std::memory_order_relaxed)).depth == 1; }

bool ApiCalls::enter(leadline_gpu_kind kind, bool makes_work, std::uint32_t correlation) noexcept {
  ThreadState& thread = state_in(session_.load(std::memory_order_relaxed));
  if (thread.depth++ == 0) {
    thread.stretch = state_.load(std::memory_order_acquire);
    return true;
  }
  if (makes_work && correlation != thread.correlation) {
    const Launch inner{thread.context,     thread.start_ns,       place_in_log(), static_cast<std::uint8_t>(kind),
                       thread.correlation, !tells(thread.stretch)};
    tables_.launches.put(correlation, inner, false);
    if (Recorder* to = recorder()) inner.paused ? to->paused_call(correlation) : to->inner_call(correlation, inner);
  }
  return false;
}

void ApiCalls::begin(const leadline_gpu_api_event& call, bool makes_work) noexcept {
  ThreadState& thread = state_in(session_.load(std::memory_order_relaxed));
  const std::uint32_t place = place_in_log();
  const bool told = tells(thread.stretch);
  const auto correlation = static_cast<std::uint32_t>(call.correlation);
  thread.correlation = correlation;
  thread.captured = false;
  thread.start_ns = leadline_monitor_now();
  thread.event = call;
  Launch launch{0, thread.start_ns, place, static_cast<std::uint8_t>(call.kind), 0, true};
  if (!told) {
    thread.context = 0;
    tables_.launches.put(correlation, launch, false);
    if (Recorder* to = recorder()) to->paused_call(correlation);
    return;
  }
  tables_.launches.log()->begins(place);
  leadline_event event{};
  event.domain = LEADLINE_DOMAIN_GPU_API;
  event.phase = LEADLINE_BEGIN;
  event.time_ns = thread.start_ns;
  event.of.gpu_api = call;
  leadline_monitor_emit(&event);
  thread.context = leadline_monitor_context();
  launch.context = thread.context;
  launch.paused = thread.context == 0;  // nobody listens any more
  tables_.launches.put(correlation, launch, makes_work && !launch.paused);
  if (Recorder* to = recorder()) to->api_begin(call, thread.context, thread.start_ns, place);
  if (waits(static_cast<leadline_gpu_kind>(call.kind))) thread.cpu_ns = thread_cpu_ns();
}

void ApiCalls::leave(leadline_gpu_kind kind, bool makes_work, bool failed,
                     std::optional<std::uint64_t> address) noexcept {
  ThreadState& thread = state_in(session_.load(std::memory_order_relaxed));
  if (thread.depth == 0) return;  // began before measuring did
  if (--thread.depth > 0) return;
  const std::int64_t cpu_ns = waits(kind) ? thread_cpu_ns() : 0;
  const std::int64_t now = leadline_monitor_now();
  // How long a call took around which measuring rested or went on is not known.
  const std::uint32_t present = state_.load(std::memory_order_acquire);
  const bool told = tells(thread.stretch) && (present == thread.stretch || present == kClosed);
  if ((failed || thread.captured) && makes_work) tables_.launches.cancel(place_in_log(), thread.correlation);
  if (!failed && (kind == LEADLINE_GPU_ALLOC || kind == LEADLINE_GPU_FREE)) book_memory(kind, address, told);
  if (tells(thread.stretch)) tables_.launches.log()->ends(place_in_log());
  if (!told) {
    // Who heard its begin hears its end; the monitor knows when the pause was.
    if (tells(thread.stretch)) end_call(thread.event, now);
    thread.context = 0;
    return;
  }
  if (waits(kind)) {
    if (time_waits_.load(std::memory_order_relaxed)) {
      emit_measure(thread.context, MetricKind::kSyncTime, now - thread.start_ns, -1, now);
    }
    // Whether the driver spins or sleeps is the program's choice and the driver's.
    const std::int64_t ran_ns = std::clamp<std::int64_t>(cpu_ns - thread.cpu_ns, 0, now - thread.start_ns);
    emit_measure(thread.context, MetricKind::kSyncRunningTime, ran_ns, -1, now);
  }
  end_call(thread.event, now);
  if (now - thread.start_ns >= kLongCallNs) {
    put_place(thread.start_ns, thread.context);
    put_place(now, region());
  }
  if (Recorder* to = recorder()) to->api_end(thread.event, now, place_in_log(), failed || thread.captured);
  thread.context = 0;
}

void ApiCalls::book_memory(leadline_gpu_kind kind, std::optional<std::uint64_t> address, bool told) noexcept {
  if (!address || *address == 0) return;
  const ThreadState& thread = state_in(session_.load(std::memory_order_relaxed));
  const std::int64_t now = leadline_monitor_now();
  if (kind == LEADLINE_GPU_ALLOC) {
    const std::int64_t bytes = thread.event.bytes;
    if (bytes == 0) return;
    if (!tables_.allocations.taken(*address, bytes, told)) count_loss(LossKind::kMemoryEventsDropped, 1, nullptr);
    if (told)
      emit_measure(thread.context, MetricKind::kDeviceAllocBytes, bytes, thread.event.device, now,
                   thread.event.device_type);
    return;
  }
  const Allocations::Given given = tables_.allocations.given_back(*address);
  if (!told || given.unmeasured) return;
  if (given.bytes) {
    emit_measure(thread.context, MetricKind::kDeviceFreeBytes, *given.bytes, thread.event.device, now,
                 thread.event.device_type);
  } else {
    count_loss(given.busy ? LossKind::kMemoryEventsDropped : LossKind::kFreeUnknown, 1, nullptr);
  }
}

}  // namespace leadline::gpu
