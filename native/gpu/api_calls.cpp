#include "gpu/api_calls.h"

#include <algorithm>

#include "base/clock.h"
#include "base/ids.h"
#include "gpu/measure.h"
#include "gpu/recording.h"

namespace leadline::gpu {
namespace {

// One per thread; plain data, so that it needs no destruction and may be touched at any time of a thread's life.
struct ThreadState {
  std::uint32_t session = 0;
  std::uint32_t depth = 0;        // nested API calls
  std::uint32_t stretch = 0;      // when the outermost began, see ApiCalls::state_
  std::uint32_t correlation = 0;  // of the outermost
  std::int64_t start_ns = 0;
  std::int64_t cpu_ns = 0;  // CPU time of the thread when its wait began
  leadline_context context = 0;
  leadline_gpu_api_event event{};           // what BEGIN said, for END
  bool captured = false;                    // the call became a graph node: nothing runs now
  const MarksRegistry* marks_of = nullptr;  // where `marks` is its ring; null: ask MarksOfThread
  std::uint32_t marks = MarksRegistry::kNone;
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

// Gives the thread's ring of marks back when the thread ends. It shares the registry, since a thread may outlive the
// measuring that the registry belongs to.
struct MarksOfThread {
  std::shared_ptr<MarksRegistry> registry;
  std::uint32_t index = MarksRegistry::kNone;
  std::uint32_t get(const std::shared_ptr<MarksRegistry>& of) noexcept {
    if (registry != of) {
      if (registry) registry->give_back(index);
      registry = of;
      index = of->take();
      if (index == MarksRegistry::kNone) {
        count_loss(LossKind::kInternalError, 1,
                   "There was no room to keep what a thread did between its GPU calls (1,024 threads, or memory), so "
                   "idle time of devices is charged to the call that ended it.");
      }
    }
    return index;
  }
  ~MarksOfThread() {
    if (registry) registry->give_back(index);
    state().marks_of = nullptr;
    state().ends = true;
  }
};
thread_local MarksOfThread marks_of_thread;

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

std::uint32_t ApiCalls::marks_of_this_thread() noexcept {
  ThreadState& mine = state();
  if (mine.marks_of != marks_.get()) [[unlikely]] {
    if (mine.ends) return MarksRegistry::kNone;
    mine.marks = marks_of_thread.get(marks_);
    mine.marks_of = marks_.get();  // which lives as long as MarksOfThread holds it
  }
  return mine.marks;
}

void ApiCalls::mark(std::int64_t time_ns, leadline_context context) noexcept {
  const std::uint32_t thread = marks_of_this_thread();
  if (ThreadMarks* ring = marks_->at(thread)) ring->add(time_ns, context);
  if (Recorder* to = recorder()) to->mark(thread, time_ns, context);
}

ApiCalls::Open ApiCalls::open_call() const noexcept {
  const ThreadState& thread = state_in(session_);
  if (thread.depth == 0) return {};
  return {thread.context, static_cast<leadline_gpu_kind>(thread.event.kind), thread.correlation, true};
}

void ApiCalls::captured() noexcept { state_in(session_).captured = true; }

bool ApiCalls::is_outermost() const noexcept { return state_in(session_).depth == 1; }

bool ApiCalls::enter(leadline_gpu_kind kind, bool makes_work, std::uint32_t correlation) noexcept {
  ThreadState& thread = state_in(session_);
  const std::uint32_t marks = marks_of_this_thread();
  if (thread.depth++ == 0) {
    thread.stretch = state_.load(std::memory_order_acquire);
    return true;
  }
  if (makes_work && correlation != thread.correlation) {
    const Launch inner{thread.context,     thread.start_ns,       marks, static_cast<std::uint8_t>(kind),
                       thread.correlation, !tells(thread.stretch)};
    tables_.launches.put(correlation, inner, false);
    if (Recorder* to = recorder()) inner.paused ? to->paused_call(correlation) : to->inner_call(correlation, inner);
  }
  return false;
}

void ApiCalls::begin(const leadline_gpu_api_event& call, bool makes_work) noexcept {
  ThreadState& thread = state_in(session_);
  const std::uint32_t marks = marks_of_this_thread();
  const bool told = tells(thread.stretch);
  const auto correlation = static_cast<std::uint32_t>(call.correlation);
  thread.correlation = correlation;
  thread.captured = false;
  thread.start_ns = leadline_monitor_now();
  thread.event = call;
  Launch launch{0, thread.start_ns, marks, static_cast<std::uint8_t>(call.kind), 0, true};
  if (!told) {
    thread.context = 0;
    tables_.launches.put(correlation, launch, false);
    if (Recorder* to = recorder()) to->paused_call(correlation);
    return;
  }
  count_.fetch_add(1, std::memory_order_relaxed);
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
  if (ThreadMarks* ring = marks_->at(marks)) ring->add(thread.start_ns, thread.context);
  if (Recorder* to = recorder()) to->api_begin(call, thread.context, thread.start_ns, marks);
  if (waits(static_cast<leadline_gpu_kind>(call.kind))) thread.cpu_ns = thread_cpu_ns();
}

void ApiCalls::leave(leadline_gpu_kind kind, bool makes_work, bool failed,
                     std::optional<std::uint64_t> address) noexcept {
  ThreadState& thread = state_in(session_);
  if (thread.depth == 0) return;  // began before measuring did
  if (--thread.depth > 0) return;
  const std::int64_t cpu_ns = waits(kind) ? thread_cpu_ns() : 0;
  const std::int64_t now = leadline_monitor_now();
  // How long a call took around which measuring rested or went on is not known.
  const std::uint32_t present = state_.load(std::memory_order_acquire);
  const bool told = tells(thread.stretch) && (present == thread.stretch || present == kClosed);
  if ((failed || thread.captured) && makes_work) tables_.launches.cancel(thread.correlation);
  if (!failed && (kind == LEADLINE_GPU_ALLOC || kind == LEADLINE_GPU_FREE)) book_memory(kind, address, told);
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
  const std::uint32_t marks = marks_of_this_thread();
  if (ThreadMarks* ring = marks_->at(marks)) ring->add(now, 0);
  if (Recorder* to = recorder()) to->api_end(thread.event, now, marks, failed || thread.captured);
  thread.context = 0;
}

void ApiCalls::book_memory(leadline_gpu_kind kind, std::optional<std::uint64_t> address, bool told) noexcept {
  if (!address || *address == 0) return;
  const ThreadState& thread = state_in(session_);
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
