#include "monitor/monitor.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <new>

#include "base/clock.h"
#include "base/losses.h"
#include "monitor/busy.h"

namespace leadline {
namespace {

constexpr char kClosure[] = "closure";  // as in capture/providers/closures.py

long membarrier(int command) noexcept { return syscall(SYS_membarrier, command, 0, 0); }

// Read at every event: static TLS saves the call that a library loaded at run time would make for it.
__attribute__((tls_model("initial-exec"))) thread_local ThreadState* t_state = nullptr;

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

// Gives the state of an ending thread back.
struct ThreadExit {
  ~ThreadExit() {
    ThreadState* state = t_state;
    if (state == nullptr) return;
    t_state = nullptr;
    Monitor& monitor = Monitor::instance();
    const Monitor::Busy busy(*state, monitor.fence_needed_);
    const uint32_t used = monitor.used_.load(std::memory_order_acquire);
    const bool current = state->generation == monitor.generation_.load(std::memory_order_relaxed);
    for (uint32_t i = 0; i < used && current; ++i) {
      Monitor::Slot& slot = monitor.slots_[i];
      if (slot.domains.load(std::memory_order_acquire) != 0 && slot.subscriber != nullptr)
        slot.subscriber->on_thread_exit(*state);
    }
    state->path.clear();
    state->alive.store(false, std::memory_order_release);  // the subscriber's part waits for the next thread
  }
};

Monitor::Monitor() noexcept { fence_needed_ = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) != 0; }

Monitor& Monitor::instance() noexcept {
  // Never destroyed: threads may outlive main.
  alignas(Monitor) static unsigned char storage[sizeof(Monitor)];
  static Monitor* const monitor = new (storage) Monitor();
  return *monitor;
}

ThreadState* Monitor::thread() noexcept {
  ThreadState* state = t_state;
  if (state == nullptr) [[unlikely]] {
    state = new_thread();
    if (state == nullptr) return nullptr;
  }
  const uint32_t epoch = epoch_.load(std::memory_order_relaxed);
  if (state->epoch != epoch) [[unlikely]] {
    state->epoch = epoch;
    state->path.clear();
    state->operators_open = 0;
    const uint32_t generation = generation_.load(std::memory_order_relaxed);
    if (state->generation != generation) {
      state->generation = generation;
      state->subscriber = nullptr;
    }
  }
  return state;
}

ThreadState* Monitor::new_thread() noexcept {
  thread_local ThreadExit at_exit;
  (void)at_exit;
  ThreadState* state = nullptr;
  // A state whose thread has ended serves again: programs that start threads without end stay bounded.
  for (ThreadState* old = threads_.load(std::memory_order_acquire); old != nullptr; old = old->next) {
    bool alive = false;
    if (!old->alive.load(std::memory_order_acquire) && old->alive.compare_exchange_strong(alive, true)) {
      state = old;
      break;
    }
  }
  if (state == nullptr) {
    try {
      state = new ThreadState(python_, &modules_);
    } catch (...) {
      losses().count(LossKind::kInternalError, 1, "out of memory for a thread's state");
      return nullptr;
    }
    state->next = threads_.load(std::memory_order_relaxed);
    while (!threads_.compare_exchange_weak(state->next, state, std::memory_order_release)) {
    }
  }
  static std::atomic<uint64_t> lives{0};
  state->life = lives.fetch_add(1, std::memory_order_relaxed) + 1;
  state->tid = static_cast<uint64_t>(syscall(SYS_gettid));
  state->epoch = epoch_.load(std::memory_order_relaxed) - 1;  // so that thread() brings it up to date
  t_state = state;
  return state;
}

leadline_status Monitor::add(uint32_t domains, Subscriber* subscriber, leadline_callback callback, void* user,
                             leadline_subscription* out) noexcept {
  if (domains == 0 || out == nullptr || (subscriber == nullptr && callback == nullptr)) return LEADLINE_ERROR_INVALID;
  const std::lock_guard lock(change_);
  for (uint32_t i = 0; i < kMaxSubscribers; ++i) {
    Slot& slot = slots_[i];
    if (slot.domains.load(std::memory_order_relaxed) != 0) continue;
    slot.subscriber = subscriber;
    slot.callback = callback;
    slot.user = user;
    ++slot.generation;
    slot.domains.store(domains, std::memory_order_release);
    if (used_.load(std::memory_order_relaxed) <= i) used_.store(i + 1, std::memory_order_release);
    refresh_active();
    *out = (slot.generation << 8) | (i + 1);
    return LEADLINE_OK;
  }
  return LEADLINE_ERROR_FULL;
}

leadline_status Monitor::subscribe(uint32_t domains, Subscriber* subscriber, leadline_subscription* out) noexcept {
  return add(domains, subscriber, nullptr, nullptr, out);
}

leadline_status Monitor::subscribe(uint32_t domains, leadline_callback callback, void* user,
                                   leadline_subscription* out) noexcept {
  return add(domains, nullptr, callback, user, out);
}

void Monitor::refresh_active() noexcept {
  uint32_t all = 0;
  for (const Slot& slot : slots_) all |= slot.domains.load(std::memory_order_relaxed);
  active_.store(all, std::memory_order_release);
}

leadline_status Monitor::unsubscribe(leadline_subscription subscription) noexcept {
  const uint32_t index = (subscription & 0xff) - 1;
  if (index >= kMaxSubscribers) return LEADLINE_ERROR_INVALID;
  const std::lock_guard lock(change_);
  Slot& slot = slots_[index];
  if (slot.generation != subscription >> 8 || slot.domains.load(std::memory_order_relaxed) == 0)
    return LEADLINE_ERROR_INVALID;
  slot.domains.store(0, std::memory_order_seq_cst);
  refresh_active();
  wait_until_idle();
  slot.subscriber = nullptr;
  slot.callback = nullptr;
  return LEADLINE_OK;
}

leadline_status Monitor::change_domains(leadline_subscription subscription, uint32_t domains) noexcept {
  const uint32_t index = (subscription & 0xff) - 1;
  if (index >= kMaxSubscribers || domains == 0) return LEADLINE_ERROR_INVALID;
  const std::lock_guard lock(change_);
  Slot& slot = slots_[index];
  if (slot.generation != subscription >> 8 || slot.domains.load(std::memory_order_relaxed) == 0)
    return LEADLINE_ERROR_INVALID;
  slot.domains.store(domains, std::memory_order_seq_cst);
  refresh_active();
  wait_until_idle();
  return LEADLINE_OK;
}

void Monitor::wait_until_idle() noexcept {
  if (!fence_needed_) membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
  for (ThreadState* state = threads_.load(std::memory_order_acquire); state != nullptr; state = state->next) {
    // A callback that unsubscribes itself would wait for its own end.
    while (state != t_state && state->busy.load(std::memory_order_acquire)) usleep(50);
  }
}

void Monitor::finalize() noexcept {
  for (uint32_t i = 0; i < kMaxSubscribers; ++i) {
    if (slots_[i].domains.load(std::memory_order_acquire) != 0) unsubscribe((slots_[i].generation << 8) | (i + 1));
  }
  forget_open_scopes();
}

void Monitor::after_fork() noexcept {
  new (&change_) std::mutex();
  modules_.after_fork();
  reset_cost();
  for (ThreadState* state = threads_.load(std::memory_order_acquire); state != nullptr; state = state->next) {
    state->busy.store(false, std::memory_order_relaxed);
    if (state != t_state) {
      state->path.clear();
      state->alive.store(false, std::memory_order_relaxed);
    }
  }
  if (t_state != nullptr) t_state->tid = static_cast<uint64_t>(syscall(SYS_gettid));
  if (!fence_needed_) fence_needed_ = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) != 0;
  forget_subscriber_state();
}

void Monitor::deliver(const leadline_event& event, ThreadState& thread) noexcept {
  const uint32_t used = used_.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < used; ++i) {
    const Slot& slot = slots_[i];
    if ((slot.domains.load(std::memory_order_acquire) & event.domain) == 0) continue;
    if (slot.subscriber != nullptr) {
      slot.subscriber->on_event(event, thread);
    } else if (event.time_ns != 0) {
      slot.callback(&event, slot.user);
    } else {
      leadline_event timed = event;
      timed.time_ns = now_ns();
      slot.callback(&timed, slot.user);
    }
  }
}

void Monitor::begin(leadline_event& event, ThreadState& thread) {
  CallPath& path = thread.path;
  path.sync();
  if (path.take_moved()) [[unlikely]]
    scopes_moved(thread);
  const ScopeKind kind = scope_kind(event);
  if (event.domain == LEADLINE_DOMAIN_GPU_API) {
    path.push(event.token, kind, path.frames().named_at(FrameKind::kApi, event.of.gpu_api.name));
  } else {
    const leadline_region_event& region = event.of.region;
    const FrameKind frame = kind == ScopeKind::kPhase ? FrameKind::kPhase : FrameKind::kRegion;
    path.push_region(event.token, kind,
                     path.frames().named(frame, region.name, region.detail == nullptr ? "" : region.detail));
  }
  Scope& scope = path.scopes().back();
  // What the program gave the optimizer to call: modules show their forward phase there as they do outside.
  if (kind == ScopeKind::kPhase && std::strcmp(event.of.region.name, kClosure) == 0) scope.below_module = false;
  scope.begin_ns = event.time_ns;
  deliver(event, thread);
}

void Monitor::end_scope(ThreadState& thread) {
  thread.path.pop();
  if (thread.path.take_moved()) [[unlikely]]
    scopes_moved(thread);
}

void Monitor::end(leadline_event& event, ThreadState& thread) {
  CallPath& path = thread.path;
  const void* token = event.token;
  if (token == nullptr) {
    const ScopeKind kind = scope_kind(event);
    for (const Scope& scope : path.scopes()) {
      if (scope.kind == kind) token = scope.token;
    }
  }
  if (!find_scope(token, event.time_ns, thread)) return;
  deliver(event, thread);
  end_scope(thread);
}

// Runs `handle` with everything that could go wrong contained, and measures what it cost now and then.
template <typename Handle>
void Monitor::guarded(ThreadState& state, int64_t begin_ns, const Handle& handle) noexcept {
  const uint64_t number = state.events.load(std::memory_order_relaxed) + 1;
  state.events.store(number, std::memory_order_relaxed);
  const bool measured = number % kCostSample == 0;
  if (measured && begin_ns == 0) [[unlikely]]
    begin_ns = now_ns();
  try {
    handle();
  } catch (...) {
    losses().count(LossKind::kInternalError, 1, "an event could not be handled, most likely for want of memory");
    state.path.clear();
    state.operators_open = 0;
  }
  if (measured) [[unlikely]] {
    state.sampled_ns.fetch_add(now_ns() - begin_ns, std::memory_order_relaxed);
    state.sampled.fetch_add(1, std::memory_order_relaxed);
    state.held_bytes.store(state.path.frames().held_bytes(), std::memory_order_relaxed);
  }
}

void Monitor::begin_operator(const leadline_operator_event& op, const void* token) noexcept {
  if (active(LEADLINE_DOMAIN_OPERATOR) == 0) return;
  ThreadState* state = thread();
  if (state == nullptr) return;
  const Busy busy(*state, fence_needed_);
  if (!busy) return;
  guarded(*state, 0, [&] {
    CallPath& path = state->path;
    path.sync();
    if (path.take_moved()) [[unlikely]]
      scopes_moved(*state);
    path.push(token, ScopeKind::kOperator, path.frames().operator_named(op.name, op.stable_name != 0, op.inputs));
    Scope& scope = path.scopes().back();
    scope.sequence = op.sequence;
    scope.forward_thread = op.forward_thread;
    ++state->operators_open;
    const uint32_t used = used_.load(std::memory_order_acquire);
    for (uint32_t i = 0; i < used; ++i) {
      const Slot& slot = slots_[i];
      if ((slot.domains.load(std::memory_order_acquire) & LEADLINE_DOMAIN_OPERATOR) == 0) continue;
      if (slot.subscriber != nullptr) {
        slot.subscriber->on_operator_begin(op, *state);
      } else {
        leadline_event event{};
        event.domain = LEADLINE_DOMAIN_OPERATOR;
        event.phase = LEADLINE_BEGIN;
        event.time_ns = now_ns();
        event.token = token;
        event.of.op = op;
        event.of.op.nesting = state->operators_open - 1;
        slot.callback(&event, slot.user);
      }
    }
  });
}

void Monitor::end_operator(const void* token) noexcept {
  if (active(LEADLINE_DOMAIN_OPERATOR) == 0) return;
  ThreadState* state = thread();
  if (state == nullptr) return;
  const int64_t time_ns = now_ns();
  const Busy busy(*state, fence_needed_);
  if (!busy) return;
  guarded(*state, time_ns, [&] {
    CallPath& path = state->path;
    if (token == nullptr) {
      for (const Scope& scope : path.scopes()) {
        if (scope.kind == ScopeKind::kOperator) token = scope.token;
      }
    }
    if (!find_scope(token, time_ns, *state)) return;
    if (state->operators_open > 0) --state->operators_open;
    const uint32_t used = used_.load(std::memory_order_acquire);
    for (uint32_t i = 0; i < used; ++i) {
      const Slot& slot = slots_[i];
      if ((slot.domains.load(std::memory_order_acquire) & LEADLINE_DOMAIN_OPERATOR) == 0) continue;
      if (slot.subscriber != nullptr) {
        slot.subscriber->on_operator_end(time_ns, *state);
      } else {
        const Scope& scope = path.scopes().back();
        leadline_event event{};
        event.domain = LEADLINE_DOMAIN_OPERATOR;
        event.phase = LEADLINE_END;
        event.time_ns = time_ns;
        event.token = token;
        event.of.op.name = path.frames()[path.entries()[scope.entry].frame].name;
        event.of.op.sequence = scope.sequence;
        event.of.op.forward_thread = scope.forward_thread;
        event.of.op.nesting = state->operators_open;
        slot.callback(&event, slot.user);
      }
    }
    end_scope(*state);
  });
}

void Monitor::emit(const leadline_event& given) noexcept {
  if (active(given.domain) == 0) return;
  if (given.domain == LEADLINE_DOMAIN_OPERATOR) {
    if (given.phase == LEADLINE_BEGIN) begin_operator(given.of.op, given.token);
    if (given.phase == LEADLINE_END) end_operator(given.token);
    return;
  }
  ThreadState* state = thread();
  if (state == nullptr) return;
  const Busy busy(*state, fence_needed_);
  if (!busy) return;
  constexpr uint32_t kNests = LEADLINE_DOMAIN_REGION | LEADLINE_DOMAIN_GPU_API | LEADLINE_DOMAIN_COMPILE;
  if ((given.domain & kNests) == 0) {
    // No copy and no clock: of what does not nest, only callbacks are told when it happened.
    guarded(*state, given.time_ns, [&] { deliver(given, *state); });
    return;
  }
  leadline_event event = given;
  if (event.time_ns == 0) event.time_ns = now_ns();
  guarded(*state, event.time_ns, [&] {
    if (given.phase == LEADLINE_BEGIN) {
      begin(event, *state);
    } else if (given.phase == LEADLINE_END) {
      end(event, *state);
    } else {
      deliver(event, *state);
    }
  });
}
}  // namespace leadline
