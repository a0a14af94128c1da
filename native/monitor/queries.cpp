// What may be asked of the monitor: where a thread is, and what measuring has cost.
#include <algorithm>
#include <array>
#include <vector>

#include "base/clock.h"
#include "base/losses.h"
#include "monitor/busy.h"
#include "monitor/monitor.h"

namespace leadline {
namespace {

uint32_t source_of(FrameKind kind) noexcept {
  switch (kind) {
    case FrameKind::kPython:
      return LEADLINE_SOURCE_PYTHON;
    case FrameKind::kModule:
      return LEADLINE_SOURCE_MODULE;
    case FrameKind::kOperator:
      return LEADLINE_SOURCE_OPERATOR;
    case FrameKind::kApi:
      return LEADLINE_SOURCE_API;
    case FrameKind::kNative:
      return LEADLINE_SOURCE_NATIVE;
    default:
      return LEADLINE_SOURCE_REGION;
  }
}

// Of what has been called since the innermost operator began, or Python called out; outermost first.
std::vector<PathFrameId> native_frames(const NativeSource& source, CallPath& path) {
  constexpr size_t kMost = 192;
  std::array<uintptr_t, kMost> calls;
  const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  uintptr_t end = path.innermost_evaluation();
  if (end <= here) end = UINTPTR_MAX;
  const Scope* const scope = path.innermost();
  const auto token = scope == nullptr ? 0 : reinterpret_cast<uintptr_t>(scope->token);
  if (scope != nullptr && scope->kind == ScopeKind::kOperator && token > here && token < end) end = token;
  bool whole = true;
  size_t left = source.walk(here, end, calls.data(), kMost, &whole);
  std::vector<PathFrameId> found;
  for (NativeText text; left-- > 0; text = {}) {
    if (source.describe(calls[left], &text)) found.push_back(path.frames().native(text));
  }
  return found;
}

}  // namespace

// What the core's own subscriber answers; `otherwise` where there is none.
template <typename Answer, typename Ask>
Answer Monitor::ask_core(Answer otherwise, const Ask& ask) noexcept {
  ThreadState* state = used_.load(std::memory_order_acquire) == 0 ? nullptr : thread();
  if (state == nullptr) return otherwise;
  // A provider asks from inside its own event as well as between events. Busy before the slot is looked at: what is
  // found there stays until this thread is idle again.
  const Busy busy(*this, *state);
  Subscriber* const there = core(kAnyDomain);
  return there != nullptr ? ask(*there, *state, !busy) : otherwise;
}

leadline_context Monitor::context() noexcept {
  return ask_core(leadline_context{0}, [this](Subscriber& subscriber, ThreadState& state, bool in_event) {
    return paused() ? 0 : subscriber.context(state, in_event);  // paused: it has no part in what begins now
  });
}

bool Monitor::context_in_file(leadline_context context, std::string_view file) noexcept {
  return ask_core(
      false, [&](Subscriber& subscriber, ThreadState&, bool) { return subscriber.context_in_file(context, file); });
}

leadline_context Monitor::thread_place(uint64_t tid, std::string_view name, clockid_t cpu, bool new_born) noexcept {
  return ask_core(leadline_context{0}, [&](Subscriber& subscriber, ThreadState&, bool) {
    return subscriber.thread_place(tid, name, cpu, new_born);
  });
}

bool Monitor::timed(const TimedOperators& operators) noexcept {
  return ask_core(
      false, [&](Subscriber& subscriber, ThreadState& state, bool) { return subscriber.on_timed(operators, state); });
}

void Monitor::thread_ran(uint64_t tid, int64_t cpu_ns, bool over) noexcept {
  ask_core(false, [&](Subscriber& subscriber, ThreadState&, bool) {
    subscriber.thread_ran(tid, cpu_ns, over);
    return true;
  });
}

leadline_status Monitor::path_to(leadline_context context, leadline_frame* frames, size_t* count) noexcept {
  if (count == nullptr || (frames == nullptr && *count != 0)) return LEADLINE_ERROR_INVALID;
  return ask_core(LEADLINE_ERROR_UNAVAILABLE, [&](Subscriber& subscriber, ThreadState&, bool) {
    return subscriber.path_to(context, frames, count);
  });
}

leadline_status Monitor::call_path(uint32_t sources, leadline_frame* frames, size_t* count) noexcept {
  if (count == nullptr || (frames == nullptr && *count != 0)) return LEADLINE_ERROR_INVALID;
  ThreadState* state = thread();
  if (state == nullptr) return LEADLINE_ERROR_UNAVAILABLE;
  const size_t room = *count;
  size_t needed = 0;
  const Busy busy(*this, *state);
  std::vector<PathFrameId> inner;
  try {
    if (busy) state->path.sync();  // inside an event the path is up to date already
    if ((sources & LEADLINE_SOURCE_NATIVE) != 0 && native() != nullptr) inner = native_frames(*native(), state->path);
  } catch (...) {
    losses().count(LossKind::kInternalError, 1, "a call path could not be read because memory ran out");
    forget_scopes(*state);
    *count = 0;
    return LEADLINE_ERROR_NO_MEMORY;
  }
  const auto put = [&](PathFrameId id) {
    const PathFrame& frame = state->path.frames()[id];
    if ((source_of(frame.kind) & sources) == 0) return;
    if (needed < room) {
      frames[needed] = {static_cast<uint8_t>(frame.kind), frame.line, frame.name, frame.file, frame.address};
    }
    ++needed;
  };
  for (const PathEntry& entry : state->path.entries()) put(entry.frame);
  for (const PathFrameId id : inner) put(id);
  *count = needed;
  return needed > room ? LEADLINE_ERROR_FULL : LEADLINE_OK;
}

void Monitor::reset_cost() noexcept {
  int64_t clock_cost_ns = INT64_MAX;
  for (int i = 0; i < 16; ++i) {
    const int64_t before_ns = now_ns();
    clock_cost_ns = std::min(clock_cost_ns, now_ns() - before_ns);
  }
  clock_cost_ns_.store(clock_cost_ns, std::memory_order_relaxed);
  for (ThreadState* state = threads_.load(std::memory_order_acquire); state != nullptr; state = state->next) {
    const uint32_t begun =
        state->interval.load(std::memory_order_relaxed) - state->until_sample.load(std::memory_order_relaxed);
    state->events.store(-uint64_t{begun}, std::memory_order_relaxed);
    state->sampled_ns.store(0, std::memory_order_relaxed);
    state->sampled.store(0, std::memory_order_relaxed);
  }
}

size_t Monitor::thread_states() const noexcept {
  size_t count = 0;
  for (const ThreadState* state = threads_.load(std::memory_order_acquire); state != nullptr; state = state->next)
    ++count;
  return count;
}

Monitor::Cost Monitor::cost() const noexcept {
  Cost cost;
  int64_t sampled_ns = 0;
  uint64_t sampled = 0;
  for (const ThreadState* state = threads_.load(std::memory_order_acquire); state != nullptr; state = state->next) {
    cost.events += state->events.load(std::memory_order_relaxed) + state->interval.load(std::memory_order_relaxed) -
                   state->until_sample.load(std::memory_order_relaxed);
    sampled_ns += state->sampled_ns.load(std::memory_order_relaxed);
    sampled += state->sampled.load(std::memory_order_relaxed);
    cost.held_bytes += sizeof(ThreadState) + state->held_bytes.load(std::memory_order_relaxed);
  }
  if (sampled != 0) {
    cost.callbacks_ns = static_cast<int64_t>(static_cast<double>(sampled_ns) / static_cast<double>(sampled) *
                                             static_cast<double>(cost.events));
  }
  return cost;
}

}  // namespace leadline
