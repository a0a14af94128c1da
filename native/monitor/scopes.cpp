// Scopes that do not end in the order in which they began.
#include <algorithm>

#include "base/losses.h"
#include "monitor/monitor.h"

namespace leadline {

void Monitor::scopes_moved(ThreadState& thread) noexcept {
  if (Subscriber* const there = core(kAnyDomain)) there->on_scopes_moved(thread);
  thread.path.departed().clear();
}

// Makes the scope that ends the innermost one; false when there is none. Without a token it is the innermost of its
// kind.
bool Monitor::find_scope(const void* token, ScopeKind kind, int64_t time_ns, ThreadState& thread) {
  CallPath& path = thread.path;
  if (thread.unheard != 0) [[unlikely]] {
    if (token == nullptr || !path.holds(token)) {
      --thread.unheard;  // it began while measuring was paused
      return false;
    }
  }
  if (token == nullptr) {
    auto& scopes = path.scopes();
    const auto innermost =
        std::find_if(scopes.rbegin(), scopes.rend(), [&](const Scope& scope) { return scope.kind == kind; });
    if (innermost == scopes.rend()) {
      losses().count(LossKind::kOperatorEndUnmatched, 1);
      return false;
    }
    // Others may have begun without one, too.
    if (innermost->token == nullptr) innermost->token = &thread.unnamed;
    token = innermost->token;
  }
  uint64_t dropped = 0;
  const bool found = path.bring_up(token, time_ns, &dropped);
  if (path.take_moved()) [[unlikely]]
    scopes_moved(thread);
  if (!found) {
    losses().count(LossKind::kOperatorEndUnmatched, 1);
    return false;
  }
  if (dropped != 0) [[unlikely]] {
    losses().count(LossKind::kOperatorEndUnmatched, dropped);
    thread.published.leave(path.scopes().size());
    thread.operators_open = 0;
    for (const Scope& scope : path.scopes()) thread.operators_open += scope.kind == ScopeKind::kOperator ? 1 : 0;
  }
  return true;
}

}  // namespace leadline
