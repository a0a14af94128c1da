// Measuring pauses and goes on: exactly what happens in between is lost.
//
// Each thread takes note at its next event. Its clock then stands at the moment of the pause, so that scopes which end
// meanwhile end at that moment; when measuring goes on, scopes that are still open have begun later by as much as the
// pause took. Scopes that begin meanwhile are counted only, so that their ends are told from ends that lack a begin.
#include "base/clock.h"
#include "monitor/busy.h"
#include "monitor/monitor.h"
#include "monitor/this_thread.h"

namespace leadline {

leadline_status Monitor::pause(leadline_subscription subscription, uint32_t domains) noexcept {
  // First, so that no end between the two is missed.
  paused_at_.store(now_ns() - paused_ns_.load(std::memory_order_relaxed), std::memory_order_release);
  version_.fetch_add(kPauses, std::memory_order_seq_cst);
  return change_domains(subscription, domains);
}

leadline_status Monitor::resume(leadline_subscription subscription, uint32_t domains) noexcept {
  // First: who found nobody listening, and no pause either, looks again.
  const bool known = set_domains(subscription, domains);
  // A thread that finds the clock running finds how long it stood, too.
  paused_ns_.store(now_ns() - paused_at_.load(std::memory_order_relaxed), std::memory_order_relaxed);
  paused_at_.store(kRuns, std::memory_order_release);
  version_.fetch_add(kPauses, std::memory_order_seq_cst);
  return known ? LEADLINE_OK : LEADLINE_ERROR_INVALID;
}

void Monitor::follow_pause(ThreadState& state) noexcept {
  const int64_t paused_at_ns = paused_at_.load(std::memory_order_acquire);
  state.sample_began_ns = 0;
  if (paused_at_ns != kRuns) return state.path.stop_clock(paused_at_ns + state.paused_ns);
  const int64_t paused_ns = paused_ns_.load(std::memory_order_relaxed);
  state.path.run_clock(paused_ns - state.paused_ns);
  state.paused_ns = paused_ns;
}

// Also where measuring has just gone on: who called had found it paused, and will tell the end.
void Monitor::begun_unheard() noexcept {
  ThreadState* state = thread();
  if (state == nullptr) return;
  const Busy busy(*this, *state);
  if (busy) ++state->unheard;
}

// Nobody seems to listen to `domain`. Whether it is otherwise, because measuring goes on this moment; while it is
// paused a begin is taken note of.
bool Monitor::heard_after_all(uint32_t domain) noexcept {
  if ((active_.load(std::memory_order_acquire) & domain) != 0) return true;
  if (!paused()) return active(domain) != 0;
  begun_unheard();
  return false;
}

// The same for an end: whether it is of a scope that is known.
bool Monitor::awaited(const void* token, ScopeKind kind, uint32_t domain) noexcept {
  if ((active_.load(std::memory_order_acquire) & domain) != 0) return true;
  if (!paused()) return active(domain) != 0;
  ThreadState* state = t_state;
  if (state == nullptr) return false;
  const Busy busy(*this, *state);
  if (!busy) return false;
  const bool unheard = state->unheard != 0;
  if (unheard && (token == nullptr || !state->path.holds(token))) {
    --state->unheard;
    return false;
  }
  if (token != nullptr) return state->path.holds(token);
  for (const Scope& scope : state->path.scopes()) {
    if (scope.kind == kind) return true;
  }
  return false;
}

}  // namespace leadline
