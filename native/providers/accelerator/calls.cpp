#include "providers/accelerator/calls.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <ctime>

#include "base/ids.h"
#include "gpu/measure.h"
#include "providers/accelerator/callbacks.h"
#include "providers/accelerator/values.h"

namespace leadline::accelerator {
namespace {

constexpr std::int32_t kOtherDevice = 3;  // leadline_memory_event: another type
constexpr std::size_t kOpenCalls = 8;     // declared functions inside one another

leadline_gpu_kind gpu_kind(Kind kind) noexcept {
  switch (kind) {
    case Kind::kLaunch:
      return LEADLINE_GPU_LAUNCH;
    case Kind::kCopy:
      return LEADLINE_GPU_COPY;
    case Kind::kSet:
      return LEADLINE_GPU_SET;
    case Kind::kSynchronize:
      return LEADLINE_GPU_SYNC;
    case Kind::kAllocate:
      return LEADLINE_GPU_ALLOC;
    case Kind::kFree:
      return LEADLINE_GPU_FREE;
    case Kind::kComplete:
    case Kind::kOther:
      break;
  }
  return LEADLINE_GPU_OTHER;
}

gpu::WorkKind work_kind(Kind kind) noexcept {
  return kind == Kind::kCopy ? gpu::WorkKind::kCopy : kind == Kind::kSet ? gpu::WorkKind::kSet : gpu::WorkKind::kKernel;
}

std::uint64_t space_of(const Function& function) noexcept { return reinterpret_cast<std::uintptr_t>(function.of); }

std::int64_t realtime_offset() noexcept {
  timespec real{};
  const std::int64_t before = leadline_monitor_now();
  clock_gettime(CLOCK_REALTIME, &real);
  const std::int64_t after = leadline_monitor_now();
  return before + (after - before) / 2 - (static_cast<std::int64_t>(real.tv_sec) * 1'000'000'000 + real.tv_nsec);
}

}  // namespace

// Lies in the frame of the entry.
struct Calls::OpenCall {
  const Function* function = nullptr;
  bool outermost = false;
  bool has_id = false;
  std::uint64_t id = 0;
  void* callback = nullptr;
  Request request;
};

namespace {

// Declared functions that the thread is inside of: plain data and little of it, since a library that is loaded late
// gets little memory of threads (static TLS). What is on the stack of a call that was left by an exception is gone.
struct OfThread {
  struct Open {
    const Frame* frame;
    std::uint32_t session;
    Kind kind;
    bool makes_work;
  };
  Open open[kOpenCalls];
  std::uint32_t depth;
  bool busy;  // in here: what our own code calls is not the program's
};
thread_local constinit OfThread of_thread{};

struct Busy {
  Busy() noexcept { of_thread.busy = true; }
  ~Busy() { of_thread.busy = false; }
};

}  // namespace

std::uint32_t Calls::next_session() noexcept {
  static std::atomic<std::uint32_t> sessions{0};
  return sessions.fetch_add(1, std::memory_order_relaxed) + 1;
}

std::uint32_t Calls::StreamNumbers::of(std::uint64_t value) noexcept {
  constexpr std::size_t kProbes = 64;
  if (value == 0) return 0;
  const std::size_t first = hash_mix(value, 0);
  for (std::size_t i = 0; i < kProbes; ++i) {
    const std::size_t at = (first + i) % kSlots;
    std::uint64_t there = handle[at].load(std::memory_order_acquire);
    if (there == 0 && handle[at].compare_exchange_strong(there, value, std::memory_order_acq_rel)) there = value;
    if (there != value) continue;
    std::uint32_t known = number[at].load(std::memory_order_acquire);
    if (known != 0) return known;
    const std::uint32_t mine = next.fetch_add(1, std::memory_order_relaxed);
    return number[at].compare_exchange_strong(known, mine, std::memory_order_acq_rel) ? mine : known;
  }
  return kSlots;
}

std::uint64_t Calls::stream_of(const Function& function, const Frame& frame) noexcept {
  const Argument* argument = function.with(Role::kStream);
  std::int64_t value = 0;
  if (argument == nullptr || !values_.integer(frame, *argument, &value)) return 0;
  if (argument->type == Type::kPointer) return streams_.of(static_cast<std::uint64_t>(value));
  return value >= 0 && value < INT32_MAX ? static_cast<std::uint64_t>(value)
                                         : streams_.of(static_cast<std::uint64_t>(value));
}

void Calls::fill(const Function& function, const Frame& frame, Request* request) noexcept {
  request->kind = work_kind(function.kind);
  request->direction = function.direction;
  request->stream = static_cast<std::int64_t>(stream_of(function, frame));
  request->device = function.of->first_device;
  std::int64_t value = 0;
  if (const Argument* device = function.with(Role::kDevice);
      device != nullptr && values_.integer(frame, *device, &value)) {
    request->device += static_cast<std::int32_t>(std::clamp<std::int64_t>(value, 0, kDevicesOfOne - 1));
  }
  if (const Argument* which = function.with(Role::kDirection);
      which != nullptr && values_.integer(frame, *which, &value)) {
    for (const auto& [number, direction] : function.directions) {
      if (number == value) request->direction = direction;
    }
  }
  bool any = false;
  std::int64_t bytes = function.bytes_each;
  for (const Argument& argument : function.arguments) {
    if (argument.role != Role::kBytes || !values_.integer(frame, argument, &value)) continue;
    any = true;
    if (value < 0 || __builtin_mul_overflow(bytes, value, &bytes)) bytes = 0;
  }
  request->bytes = any ? bytes : 0;
  const Argument* name = function.with(Role::kName);
  if (name != nullptr && values_.text(frame, *name, &request->name)) return;
  const Argument* kernel = function.with(Role::kKernel);
  if (kernel != nullptr && !kernel->points) {
    if (handles_.get(space_of(function), word(frame, *kernel), &request->name)) return;
  }
  const std::size_t length = std::min(function.name.size(), request->name.size() - 1);
  request->name.fill(0);
  std::memcpy(request->name.data(), function.name.data(), length);
}

void Calls::tell(const Request& request, const Ran& ran) noexcept {
  bool many = false;
  if (!finished_.push({true, request, ran}, &many)) {
    gpu::count_loss(LossKind::kGpuRecordsDropped, 1,
                    "Work of an accelerator ended faster than it could be taken in, so some of it is missing.");
  }
  if (many) wake_.notify_one();
}

// A function that tells the end of work.
void Calls::complete(const Function& function, const Frame& frame) noexcept {
  Ran ran;
  const std::int64_t now = leadline_monitor_now();
  ran.end_ns = ran.told_ns = now;
  const double tick = function.of->tick_ns;
  const auto time_of = [&](Role role, double* out) {
    const Argument* argument = function.with(role);
    if (argument == nullptr || !values_.real(frame, *argument, out)) return false;
    *out *= tick;
    return std::fabs(*out) < 9e18;
  };
  double begin = 0;
  double end = 0;
  double duration = 0;
  const bool has_begin = time_of(Role::kBegin, &begin);
  const bool has_end = time_of(Role::kEnd, &end);
  if (has_begin && has_end && end >= begin) {
    if (function.of->clock == Clock::kOwn) {
      // Their zero is not known, so work ends when its end is told.
      ran.start_ns = now - static_cast<std::int64_t>(end - begin);
    } else {
      const std::int64_t offset = function.of->clock == Clock::kRealtime ? realtime_offset() : 0;
      ran.end_ns = std::min(now, static_cast<std::int64_t>(end) + offset);
      ran.start_ns = ran.end_ns - static_cast<std::int64_t>(end - begin);
    }
  } else if (time_of(Role::kDuration, &duration) && duration >= 0) {
    ran.start_ns = now - static_cast<std::int64_t>(duration);
  }
  const Argument* id_argument = function.with(Role::kId);
  std::int64_t id = 0;
  if (id_argument == nullptr || !values_.integer(frame, *id_argument, &id)) return;
  if (const auto request = in_flight_.take(space_of(function), static_cast<std::uint64_t>(id), ran, true)) {
    tell(*request, ran);
  }
}

void Calls::begin(const Function& function, Frame& frame) noexcept {
  frame.state = 0;
  OfThread& thread = of_thread;
  if (thread.busy) return;
  const Busy busy;
  static_assert(sizeof(OpenCall) <= sizeof frame.kept);
  // Calls that an exception or a jump has left: the stack has grown over them.
  while (thread.depth > 0 && thread.open[thread.depth - 1].frame <= &frame) leave_behind();
  if (function.kind == Kind::kComplete) {
    if (calls_.is_listening()) complete(function, frame);
    return;
  }
  if (thread.depth >= kOpenCalls || !calls_.is_listening()) return;
  const leadline_gpu_kind kind = gpu_kind(function.kind);
  const bool makes_work = function.makes_work();
  OpenCall& call = *new (frame.kept) OpenCall;
  call.function = &function;
  call.request.correlation = next_id();
  fill(function, frame, &call.request);
  call.outermost = calls_.enter(kind, makes_work, call.request.correlation);
  if (call.outermost) {
    leadline_gpu_api_event event{};
    event.name = function.name.c_str();
    event.kind = kind;
    event.correlation = call.request.correlation;
    event.device = call.request.device;
    event.device_type = kOtherDevice;
    event.stream = function.with(Role::kStream) != nullptr ? call.request.stream : -1;
    event.bytes = call.request.bytes;
    event.awaits = kind == LEADLINE_GPU_SYNC ? event.stream : -1;
    calls_.begin(event, makes_work);
  }
  call.request.called_ns = leadline_monitor_now();
  thread.open[thread.depth++] = {&frame, session_, function.kind, makes_work};
  frame.state = 1;
  std::int64_t value = 0;
  if (const Argument* id = function.with(Role::kId);
      id != nullptr && !id->points && values_.integer(frame, *id, &value)) {
    call.has_id = true;
    call.id = static_cast<std::uint64_t>(value);
    // Known before the call, so its end may come at any time from now on.
    if (makes_work && in_flight_.put(space_of(function), call.id, call.request).forgot) {
      gpu::count_loss(LossKind::kGpuWorkUnfinished, 1,
                      "Work of an accelerator was launched under an id whose earlier work was not reported as ended.");
    }
  }
  const Argument* completion = function.with(Role::kCompletion);
  if (completion == nullptr || word(frame, *completion) == 0) return;
  call.callback = Callbacks::arm(reinterpret_cast<void*>(word(frame, *completion)), call.request, session_);
  if (call.callback == nullptr) {
    gpu::count_loss(LossKind::kGpuRecordsDropped, 1, "More work was on its way than ends of it can be waited for.");
    return;
  }
  replace(frame, *completion, call.callback);
}

void Calls::end(Frame& frame) noexcept {
  OfThread& thread = of_thread;
  if (thread.busy || frame.state == 0) return;
  const Busy busy;
  std::uint32_t at = thread.depth;
  while (at > 0 && thread.open[at - 1].frame != &frame) --at;
  if (at == 0) return;  // of a stack that was left
  while (thread.depth > at) leave_behind();
  thread.depth = at - 1;
  if (thread.open[at - 1].session != session_) return;  // it began in another measuring
  after_return(*reinterpret_cast<OpenCall*>(frame.kept), frame);
}

// The innermost open call has ended without telling.
void Calls::leave_behind() noexcept {
  const OfThread::Open& open = of_thread.open[--of_thread.depth];
  if (open.session == session_) calls_.leave(gpu_kind(open.kind), open.makes_work, true, std::nullopt);
}

void Calls::after_return(OpenCall& call, const Frame& frame) noexcept {
  const Function& function = *call.function;
  const std::int64_t now = leadline_monitor_now();
  const bool floats = function.returned.type == Type::kF32 || function.returned.type == Type::kF64;
  const std::uint64_t answered = floats ? frame.vector_result[0].low : frame.result[0];
  const std::int64_t status = signed_value(function.returned.type, answered);
  const bool failed =
      (function.success == Success::kZero && status != 0) || (function.success == Success::kNonzero && status == 0);
  const std::uint64_t space = space_of(function);
  const bool makes_work = function.makes_work();

  // What the call answered with, beside its result.
  const auto answer = [&](Role role, std::int64_t* out) {
    if (function.returned.role == role) {
      *out = status;
      return true;
    }
    const Argument* argument = function.with(role);
    return argument != nullptr && argument->points && values_.integer(frame, *argument, out);
  };
  std::int64_t value = 0;
  if (!call.has_id && answer(Role::kId, &value)) {
    call.has_id = true;
    call.id = static_cast<std::uint64_t>(value);
    if (makes_work && !failed) {
      const InFlight::Put put = in_flight_.put(space, call.id, call.request);
      if (put.ran) tell(call.request, *put.ran);
      if (put.forgot) {
        gpu::count_loss(
            LossKind::kGpuWorkUnfinished, 1,
            "Work of an accelerator was launched under an id whose earlier work was not reported as ended.");
      }
    }
  }
  if (makes_work && failed && call.has_id && !function.late_id()) in_flight_.forget(space, call.id);
  if (failed && call.callback != nullptr) Callbacks::disarm(call.callback);
  if (!failed && function.kind == Kind::kSynchronize && call.has_id) {
    const Ran ran{kUnknownTime, now, now};
    if (const auto request = in_flight_.take(space, call.id, ran, false)) tell(*request, ran);
  }
  if (!failed && answer(Role::kKernel, &value)) {
    Handles::Name name;
    const Argument* named = function.with(Role::kName);
    if (named != nullptr && values_.text(frame, *named, &name))
      handles_.put(space, static_cast<std::uint64_t>(value), name);
  }
  if (!failed && function.blocking && makes_work && call.outermost)
    tell(call.request, {call.request.called_ns, now, now});

  std::optional<std::uint64_t> address;
  if (function.kind == Kind::kFree) {
    const Argument* given = function.with(Role::kAddress);
    if (given != nullptr && values_.integer(frame, *given, &value)) address = static_cast<std::uint64_t>(value);
  } else if (function.kind == Kind::kAllocate && answer(Role::kAddress, &value)) {
    address = static_cast<std::uint64_t>(value);
  }
  calls_.leave(gpu_kind(function.kind), makes_work, failed, address);
}

void Calls::called_back(const Request& request, std::uint32_t session) noexcept {
  if (session != session_) return;
  const std::int64_t now = leadline_monitor_now();
  tell(request, {kUnknownTime, now, now});
}

}  // namespace leadline::accelerator
