#include "monitor/monitor.h"

#include <algorithm>
#include <new>

#include "base/clock.h"
#include "base/losses.h"
#include "base/membarrier.h"
#include "monitor/busy.h"
#include "monitor/this_thread.h"

namespace leadline {
namespace {

ScopeKind scope_kind(const leadline_event& event) noexcept {
  switch (event.domain) {
    case LEADLINE_DOMAIN_OPERATOR:
      return ScopeKind::kOperator;
    case LEADLINE_DOMAIN_GPU_API:
      return ScopeKind::kApi;
    case LEADLINE_DOMAIN_COMPILE:
      return ScopeKind::kPhase;
    default:
      return event.of.region.kind == LEADLINE_REGION_PHASE ? ScopeKind::kPhase : ScopeKind::kRegion;
  }
}

}  // namespace

Monitor::Monitor() noexcept { fence_needed_ = !register_membarrier(); }

Monitor& Monitor::make_instance() noexcept {
  // Never destroyed: threads may outlive main.
  alignas(Monitor) static unsigned char storage[sizeof(Monitor)];
  static Monitor* const monitor = new (storage) Monitor();
  instance_.store(monitor, std::memory_order_release);
  return *monitor;
}

ThreadState* Monitor::thread() noexcept {
  ThreadState* state = t_state;
  return state != nullptr ? state : new_thread();
}

// The one loop over those who listen: `direct` tells the core's own subscriber, callbacks get what `make` returns.
// `scope`: the one that the event begins or ends, or nullptr. Whose begin the core's subscriber heard, of that it hears
// the end.
template <typename Direct, typename Make>
void Monitor::hand_out(uint32_t domain, Scope* scope, ThreadState& thread, const Direct& direct, const Make& make) {
  const uint32_t used = used_.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < used; ++i) {
    const Slot& slot = slots_[i];
    const uint32_t domains = slot.domains.load(std::memory_order_acquire);
    if ((domains & domain) == 0) {
      if (domains != 0 && slot.subscriber != nullptr && scope != nullptr && !scope->unheard) direct(*slot.subscriber);
      continue;
    }
    if (slot.subscriber != nullptr) [[likely]] {
      direct(*slot.subscriber);
      continue;
    }
    leadline_event event = make();
    event.struct_size = sizeof event;
    event.version = LEADLINE_MONITOR_VERSION;
    event.thread_data = thread.data.of_thread(i, slot.generation);
    event.scope_data = scope == nullptr ? nullptr : thread.data.of_scope(thread.path, *scope, i, slot.generation);
    slot.callback(&event, slot.user);
  }
}

void Monitor::deliver(const leadline_event& event, Scope* scope, ThreadState& thread) {
  hand_out(
      event.domain, scope, thread,
      [&](Subscriber& to) {
        if (scope != nullptr && event.phase == LEADLINE_BEGIN) scope->unheard = false;
        if (scope == nullptr || !scope->unheard) to.on_event(event, thread);
      },
      [&] {
        leadline_event timed = event;
        if (timed.time_ns == 0) timed.time_ns = now_ns();
        return timed;
      });
}

void Monitor::begin(leadline_event& event, ThreadState& thread) {
  CallPath& path = thread.path;
  path.sync(event.time_ns);
  if (path.take_moved()) [[unlikely]]
    scopes_moved(thread);
  const ScopeKind kind = scope_kind(event);
  if (event.domain == LEADLINE_DOMAIN_GPU_API) {
    path.push(event.token, kind, path.frames().named_at(FrameKind::kApi, event.of.gpu_api.name));
  } else {
    const leadline_region_event& region = event.of.region;
    const FrameKind frame = kind == ScopeKind::kPhase ? FrameKind::kPhase : FrameKind::kRegion;
    const PathFrameId named = path.frames().named(frame, region.name, region.detail == nullptr ? "" : region.detail);
    if (kind == ScopeKind::kPhase && (region.flags & LEADLINE_REGION_FLAG_INSIDE) != 0) {
      path.push(event.token, kind, named);
    } else {
      path.push_region(event.token, kind, named);
    }
  }
  Scope& scope = path.scopes().back();
  if (event.domain == LEADLINE_DOMAIN_REGION && event.of.region.stays_ns != nullptr) {
    scope.earlier_ns = *event.of.region.stays_ns;
  }
  if (kind == ScopeKind::kPhase) {
    scope.flags = event.of.region.flags;
    if ((scope.flags & LEADLINE_REGION_FLAG_OUTERMOST) != 0) scope.below_module = false;
  }
  scope.begin_ns = event.time_ns;
  scope.unheard = true;
  deliver(event, &scope, thread);
}

// The innermost scope is over.
void Monitor::end_scope(ThreadState& thread) {
  thread.data.give_back(thread.path.scopes().back());
  thread.path.pop();
  if (thread.path.take_moved()) [[unlikely]]
    scopes_moved(thread);
  thread.published.leave(thread.path.scopes().size());
}

void Monitor::end(leadline_event& event, ThreadState& thread) {
  CallPath& path = thread.path;
  event.time_ns = path.time(event.time_ns);
  if (!find_scope(event.token, scope_kind(event), event.time_ns, thread)) return;
  deliver(event, &path.scopes().back(), thread);
  end_scope(thread);
}

void Monitor::begin_sample(ThreadState& state) noexcept {
  if ((state.busy.load(std::memory_order_relaxed) & 1) == 0) state.sample_began_ns = now_ns();
}

// When the handling of an event that is measured began; 0 for the others. After Busy, which voids what was noted before
// a pause. `known_ns`: when it began at the latest.
static inline int64_t sample_begin(ThreadState& state, int64_t known_ns = 0) noexcept {
  if (!state.measures_next()) [[likely]]
    return 0;
  if (state.sample_began_ns != 0) return state.sample_began_ns;
  return known_ns != 0 ? known_ns : now_ns();
}

// What takes longer was interrupted: the program's thread lost its core in the middle, which is nobody's cost, and
// which the few events that are measured would tell of as if it had happened to all.
constexpr int64_t kLongestSampleNs = 100'000;

// How many events until the next one that is measured: at random, so that begins and ends, and whatever else alternates
// in a program, are met as often as they come.
static uint32_t next_interval(uint32_t* random) noexcept {
  *random ^= *random << 13;
  *random ^= *random >> 17;
  *random ^= *random << 5;
  return Monitor::kCostSample / 2 + 1 + (*random >> 8) % Monitor::kCostSample;
}

// Runs `handle` with everything that could go wrong contained.
template <typename Handle>
bool Monitor::contained(ThreadState& state, const Handle& handle) noexcept {
  try {
    return handle();
  } catch (...) {
    losses().count(LossKind::kInternalError, 1, "an event could not be handled, most likely because memory ran out");
    forget_scopes(state);
    return true;
  }
}

// The same, and measures what it cost now and then.
template <typename Handle>
void Monitor::guarded(ThreadState& state, int64_t sample_began_ns, const Handle& handle) noexcept {
  constexpr auto relaxed = std::memory_order_relaxed;
  const bool measured = state.measures_next();
  const uint32_t stands_for = state.interval.load(relaxed);
  if (measured) [[unlikely]] {
    const uint32_t interval = next_interval(&state.random);
    state.events.store(state.events.load(relaxed) + stands_for, relaxed);
    state.interval.store(interval, relaxed);
    state.until_sample.store(interval, relaxed);
    state.sample_began_ns = 0;
  } else {
    state.count_event();
  }
  contained(state, [&] {
    handle();
    return true;
  });
  if (measured && sample_began_ns != 0) [[unlikely]] {
    const int64_t took_ns = now_ns() - sample_began_ns - clock_cost_ns_.load(relaxed);
    state.sampled_ns.fetch_add(std::clamp(took_ns, int64_t{0}, kLongestSampleNs) * stands_for, relaxed);
    state.sampled.fetch_add(stands_for, relaxed);
    state.held_bytes.store(state.path.frames().held_bytes(), relaxed);
  }
}

// When the core's subscriber alone hears of operators (or memory), the common ones take the short way: they are its own
// from begin to end, and nobody else looks at them. `handle` says whether it was such a one.
template <typename Handle>
bool Monitor::short_way(ThreadState* state, const std::atomic<Subscriber*>& alone, const Handle& handle) noexcept {
  if (state == nullptr || state->measures_next()) [[unlikely]]
    return false;
  const Busy busy(*this, *state);
  Subscriber* const sole = busy ? alone.load(std::memory_order_acquire) : nullptr;
  if (sole == nullptr) [[unlikely]]
    return false;
  const bool done = contained(*state, [&] { return handle(*sole); });
  if (done) [[likely]]
    state->count_event();
  return done;
}

// The short way for an event that is measured, so that what is measured is what the others take; inside guarded().
template <typename Handle>
bool Monitor::measured_short_way(const Handle& handle) {
  Subscriber* const sole = sole_.load(std::memory_order_acquire);
  return sole != nullptr && handle(*sole);
}

void Monitor::begin_operator_in(ThreadState& state, const leadline_operator_event& op, const void* token) {
  CallPath& path = state.path;
  path.sync();
  if (path.take_moved()) [[unlikely]]
    scopes_moved(state);
  Scope& scope =
      path.push(token, ScopeKind::kOperator, path.frames().operator_named(op.name, stable_name(op), op.inputs));
  scope.unheard = true;  // until it is told
  scope.sequence = op.sequence;
  scope.forward_thread = op.forward_thread;
  ++state.operators_open;
  hand_out(
      LEADLINE_DOMAIN_OPERATOR, &scope, state,
      [&](Subscriber& to) {
        scope.unheard = false;
        to.on_operator_begin(op, state);
      },
      [&] {
        leadline_event event{};
        event.domain = LEADLINE_DOMAIN_OPERATOR;
        event.phase = LEADLINE_BEGIN;
        event.time_ns = now_ns();
        event.token = token;
        event.of.op = op;
        event.of.op.nesting = state.operators_open - 1;
        return event;
      });
}

void Monitor::begin_operator(const leadline_operator_event& op, const void* token) noexcept {
  ThreadState* state = t_state;
  const auto by_sole = [&](Subscriber& sole) { return sole.begin_operator(op, token, *state); };
  if (short_way(state, sole_, by_sole)) [[likely]]
    return;
  if (active(LEADLINE_DOMAIN_OPERATOR) == 0 && !heard_after_all(LEADLINE_DOMAIN_OPERATOR)) return;
  state = thread();
  if (state == nullptr) return;
  const Busy busy(*this, *state);
  if (!busy) return;
  const int64_t sample_began_ns = sample_begin(*state);
  const bool measured = state->measures_next();
  guarded(*state, sample_began_ns, [&] {
    if (!measured || !measured_short_way(by_sole)) begin_operator_in(*state, op, token);
  });
}

void Monitor::end_operator_in(ThreadState& state, const void* token, int64_t now) {
  CallPath& path = state.path;
  const int64_t time_ns = path.time(now);
  if (!find_scope(token, ScopeKind::kOperator, time_ns, state)) return;
  if (state.operators_open > 0) --state.operators_open;
  Scope& scope = path.scopes().back();
  hand_out(
      LEADLINE_DOMAIN_OPERATOR, &scope, state,
      [&](Subscriber& to) {
        if (!scope.unheard) to.on_operator_end(time_ns, state);
      },
      [&] {
        leadline_event event{};
        event.domain = LEADLINE_DOMAIN_OPERATOR;
        event.phase = LEADLINE_END;
        event.time_ns = time_ns;
        event.token = token;
        event.of.op.name = path.frames()[path.entries()[scope.entry].frame].name;
        event.of.op.sequence = scope.sequence;
        event.of.op.forward_thread = scope.forward_thread;
        event.of.op.nesting = state.operators_open;
        return event;
      });
  end_scope(state);
}

void Monitor::end_operator(const void* token) noexcept {
  const int64_t now = now_ns();
  ThreadState* state = t_state;
  const auto by_sole = [&](Subscriber& sole) { return sole.end_operator(token, now, *state); };
  if (short_way(state, sole_, by_sole)) [[likely]]
    return;
  if (active(LEADLINE_DOMAIN_OPERATOR) == 0 && !awaited(token, ScopeKind::kOperator, LEADLINE_DOMAIN_OPERATOR)) return;
  state = thread();
  if (state == nullptr) return;
  const Busy busy(*this, *state);
  if (!busy) return;
  // Reading `now` is part of what an end takes.
  const int64_t sample_began_ns = sample_begin(*state, now - clock_cost_ns_.load(std::memory_order_relaxed));
  const bool measured = state->measures_next();
  guarded(*state, sample_began_ns, [&] {
    if (!measured || !measured_short_way(by_sole)) end_operator_in(*state, token, now);
  });
}

void Monitor::memory(const leadline_memory_event& event) noexcept {
  ThreadState* state = t_state;
  const auto by_sole = [&](Subscriber& sole) {
    sole.on_memory(event, *state);
    return true;
  };
  if (short_way(state, sole_of_memory_, by_sole)) [[likely]]
    return;
  if (active(LEADLINE_DOMAIN_MEMORY) == 0) return;
  state = thread();
  if (state == nullptr) return;
  const Busy busy(*this, *state);
  if (!busy) return;
  const int64_t sample_began_ns = sample_begin(*state);
  guarded(*state, sample_began_ns, [&] {
    hand_out(
        LEADLINE_DOMAIN_MEMORY, nullptr, *state, [&](Subscriber& to) { to.on_memory(event, *state); },
        [&] {
          leadline_event whole{};
          whole.domain = LEADLINE_DOMAIN_MEMORY;
          whole.phase = LEADLINE_INSTANT;
          whole.time_ns = now_ns();
          whole.of.memory = event;
          return whole;
        });
  });
}

void Monitor::emit(const leadline_event& given) noexcept {
  constexpr uint32_t kNests = LEADLINE_DOMAIN_REGION | LEADLINE_DOMAIN_GPU_API | LEADLINE_DOMAIN_COMPILE;
  if (given.domain == LEADLINE_DOMAIN_MEMORY) return memory(given.of.memory);
  if (given.domain == LEADLINE_DOMAIN_OPERATOR) {
    if (given.phase == LEADLINE_BEGIN) begin_operator(given.of.op, given.token);
    if (given.phase == LEADLINE_END) end_operator(given.token);
    return;
  }
  if (active(given.domain) == 0) {
    if ((given.domain & kNests) == 0 || given.phase == LEADLINE_INSTANT) return;
    const bool begins = given.phase == LEADLINE_BEGIN;
    if (!(begins ? heard_after_all(given.domain) : awaited(given.token, scope_kind(given), given.domain))) return;
  }
  ThreadState* state = thread();
  if (state == nullptr) return;
  const Busy busy(*this, *state);
  if (!busy) return;
  const int64_t sample_began_ns = sample_begin(*state);
  if ((given.domain & kNests) == 0) {
    // No copy and no clock: of what does not nest, only callbacks are told when it happened.
    guarded(*state, sample_began_ns, [&] { deliver(given, nullptr, *state); });
    return;
  }
  leadline_event event = given;
  if (event.time_ns == 0) event.time_ns = now_ns();
  guarded(*state, sample_began_ns, [&] {
    if (given.phase == LEADLINE_BEGIN) {
      begin(event, *state);
    } else if (given.phase == LEADLINE_END) {
      end(event, *state);
    } else {
      deliver(event, nullptr, *state);
    }
  });
}

}  // namespace leadline
