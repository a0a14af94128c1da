// Scopes that do not nest: regions of suspended coroutines, regions that outlive the frame that opened them (an
// ExitStack, `__enter__` by hand), and regions that end before what began inside them.
#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/losses.h"
#include "stack/call_path.h"

namespace leadline {
namespace {

constexpr size_t kMaxParked = 64;    // suspended regions of one thread
constexpr size_t kMaxOutlived = 64;  // open regions of one thread whose frame has ended
constexpr size_t kNowhere = ~size_t{0};

uint64_t bit_of(uintptr_t frame) noexcept { return uint64_t{1} << ((frame >> 4 ^ frame >> 10) & 63); }

}  // namespace

// Where in walk_[0..end) the anchor of a scope is. One that stands on its anchor, not around it, may have it at `end`.
size_t CallPath::position(const Scope& scope, size_t end) const noexcept {
  const size_t outermost = !scope.anchor_inside && end < walked_ ? end + 1 : end;
  for (size_t i = outermost; i-- > 0;) {
    if (walk_[i].frame != scope.anchor) continue;
    return scope.anchor_code == 0 || walk_[i].code == scope.anchor_code ? i : kNowhere;
  }
  return kNowhere;
}

bool CallPath::off_chain(const Scope& scope, size_t end) const noexcept {
  return scope.anchor != 0 && position(scope, end) == kNowhere;
}

// A region whose frame waits on the stack of another greenlet.
bool CallPath::is_elsewhere(const Scope& scope) const noexcept {
  const bool region = scope.kind == ScopeKind::kRegion || scope.kind == ScopeKind::kPhase;
  return region && python_ != nullptr && python_->elsewhere != nullptr && scope.anchor_code != 0 &&
         python_->elsewhere(scope.anchor, scope.anchor_code);
}

bool CallPath::parked_in_walk(size_t end) const noexcept {
  if (parked_.empty()) return false;
  for (size_t i = 0; i < end; ++i) {
    if ((parked_bits_ & bit_of(walk_[i].frame)) == 0) continue;
    for (const Aside& parked : parked_) {
      if (parked.scope.anchor == walk_[i].frame && parked.scope.anchor_code == walk_[i].code) return true;
    }
  }
  return false;
}

// Whether the scopes from number `first` on may be placed by their anchors with their clocks running. What has run
// inside one stays where it ran, so that what the scope took until now has to stay there too, or that place holds more
// than it took; and each has to stay inside the same scope.
bool CallPath::may_run_on(size_t first, size_t end) const noexcept {
  for (const Aside& parked : parked_) {
    if (position(parked.scope, end) != kNowhere) return false;
  }
  size_t outer = kNowhere;
  for (size_t i = first; i < scopes_.size(); ++i) {
    const size_t at = scopes_[i].anchor == 0 ? kNowhere : position(scopes_[i], end);
    if (at > outer || scopes_[i].child_ns != 0) return false;
    outer = at;
  }
  return true;
}

// The clock of a scope stops; what it took in this stay is put down for who keeps times, and known to the scope around.
void CallPath::leave(size_t index, int64_t time_ns) {
  Scope& scope = scopes_[index];
  Scope* around = index == 0 ? nullptr : &scopes_[index - 1];
  const uint64_t slot = entries_[scope.entry].slot;
  const int64_t elapsed_ns = std::max<int64_t>(time_ns - scope.begin_ns, 0);
  // A scope without a place yet has nobody to give its time to: it stays with the scope around.
  const bool known = slot != 0 && !scope.unheard;
  const int64_t known_ns = known ? elapsed_ns : std::min(scope.child_ns, elapsed_ns);
  if (known) departed_.push_back({slot, elapsed_ns, scope});
  if (around != nullptr) {
    around->child_ns += known_ns;
    around->children += 2;  // more than one, so that this is not taken for the only call inside
  }
  if (known) scope.earlier_ns += elapsed_ns;
  scope.begin_ns = time_ns;
  scope.child_ns = 0;
  scope.running_ns = 0;
  scope.paused_ns = 0;
  moved_ = true;
}

// A scope is taken up with its clock running, to be put elsewhere at once. The scope around is told what it took until
// now; the one around its new place is told the opposite, since it will be told the whole.
void CallPath::lift(size_t index, int64_t time_ns) {
  if (index > 0) {
    Scope& around = scopes_[index - 1];
    around.child_ns += std::max<int64_t>(time_ns - scopes_[index].begin_ns, 0);
    around.children += 2;  // as in leave()
  }
  moved_ = true;
}

// What began after that moment did so before this thread knew of it.
void CallPath::stop_clock(int64_t at_ns) noexcept {
  for (Scope& scope : scopes_) scope.begin_ns = std::min(scope.begin_ns, std::min(at_ns, stopped_ns_));
  stopped_ns_ = at_ns;
}

void CallPath::run_clock(int64_t paused_ns) noexcept {
  for (Scope& scope : scopes_) {
    scope.begin_ns = std::min(scope.begin_ns, stopped_ns_) + paused_ns;
    scope.paused_ns += paused_ns;
  }
  stopped_ns_ = INT64_MAX;
}

bool CallPath::holds(const void* token) const noexcept {
  bool found = false;
  for_each_scope([&](const Scope& scope) { found = found || scope.token == token; });
  return found;
}

void CallPath::put_back(const Aside& aside, int64_t time_ns) {
  Scope& scope = scopes_.push_back(aside.scope);
  scope.place = nullptr;
  scope.python_base = static_cast<uint32_t>(shown_.size());
  scope.entry = static_cast<uint32_t>(entries_.size());
  if (!aside.runs_on) {
    scope.begin_ns = time_ns;
    scope.returned = true;
  } else if (scopes_.size() > 1) {
    scopes_[scopes_.size() - 2].child_ns -= std::max<int64_t>(time_ns - scope.begin_ns, 0);
  }
  entries_.push_back(PathEntry{aside.entry.frame});
  moved_ = true;
}

void CallPath::park(const Aside& aside) {
  if (parked_.size() >= kMaxParked) {
    losses().count(LossKind::kRegionUnanchored);
    parked_.erase(parked_.begin());
  }
  parked_.push_back(aside);
  parked_bits_ = 0;
  for (const Aside& each : parked_) parked_bits_ |= bit_of(each.scope.anchor);
}

// The frame that opened a scope has ended and the scope has not: it goes on for whoever called that frame. Walks and
// comparisons so far know the frames outside of it: shown_[0..python_base). `around`: the scope around it, whose own
// anchor is settled.
void CallPath::anchor_anew(Scope& scope, const Scope* around) const noexcept {
  const bool region = scope.kind == ScopeKind::kRegion || scope.kind == ScopeKind::kPhase;
  const size_t lowest = around == nullptr ? 0 : around->python_base;
  for (size_t level = std::min<size_t>(scope.python_base, shown_.size()); level-- > lowest;) {
    const ShownFrame& outer = shown_[level];
    scope.anchor = outer.raw.frame;
    scope.anchor_code = outer.raw.code;
    scope.suspends = outer.suspends && region;
    // An operator stops for no generator: what opened it there is most likely a context manager.
    if ((outer.suspends && region) || position(scope, walked_) != kNowhere) return;
  }
  scope.anchor = around == nullptr ? 0 : around->anchor;
  scope.anchor_code = around == nullptr ? 0 : around->anchor_code;
  scope.anchor_inside = around != nullptr && around->anchor_inside;
  scope.suspends = around != nullptr && around->suspends;
}

// walk_ holds the chain as far as the anchor of the innermost scope (`anchored`), with walk_[0..end) above it, or all
// of it. Scopes whose anchor is gone find another one or are set aside, those whose coroutine runs again come back; so
// do those from number `settled` on.
void CallPath::replace_scopes(bool anchored, size_t end, size_t settled, int64_t at_ns) {
  const int64_t now = time(at_ns != 0 ? at_ns : now_ns());
  size_t standing = scopes_.size();
  if (!anchored) {
    standing = 0;
    end = walked_;
    for (; standing < settled; ++standing) {
      const Scope& scope = scopes_[standing];
      if (scope.anchor == 0) continue;
      const size_t at = position(scope, end);
      if (at == kNowhere) break;
      end = scope.anchor_inside ? at + 1 : at;
    }
  }
  size_t outlived = 0;
  size_t suspended = scopes_.size();  // the outermost that cannot go on
  for (size_t i = standing; i < scopes_.size(); ++i) {
    Scope& scope = scopes_[i];
    const bool gone = off_chain(scope, end);
    // Operators too: torch's _RecordFunctionFast opens one that may outlive the frame or generator it was opened in.
    if (gone && !scope.suspends && !is_elsewhere(scope)) anchor_anew(scope, i == 0 ? nullptr : &scopes_[i - 1]);
    const bool stays_off = off_chain(scope, end);
    if (stays_off) suspended = std::min(suspended, i);
    outlived += gone && !stays_off ? 1 : 0;
  }
  const bool run_on = suspended == scopes_.size() && may_run_on(standing, end);
  for (size_t i = scopes_.size(); i-- > standing;) {
    if (run_on) {
      lift(i, now);
    } else {
      leave(i, now);
    }
  }
  std::vector<Aside>& moved = moved_to_;
  moved.clear();
  for (size_t i = standing; i < scopes_.size(); ++i) {
    const Aside aside{scopes_[i], entries_[scopes_[i].entry], run_on};
    if (off_chain(aside.scope, end)) {
      park(aside);
    } else {
      moved.push_back(aside);
    }
  }
  if (standing < scopes_.size()) {
    shown_.cut(scopes_[standing].python_base);
    entries_.cut(scopes_[standing].entry);
    scopes_.cut(standing);
  }
  if (outlived != 0 && moved.size() > kMaxOutlived) {
    losses().count(LossKind::kRegionUnanchored);
    moved.erase(moved.begin());
  }
  for (size_t i = 0; i < parked_.size();) {
    if (position(parked_[i].scope, end) == kNowhere) {
      ++i;
      continue;
    }
    moved.push_back(parked_[i]);
    parked_.erase(parked_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  place(moved, end, now);
}

// Puts scopes on the path where their anchors in walk_[0..end) are, with the frames between, and the rest of the
// frames.
void CallPath::place(std::vector<Aside>& scopes, size_t end, int64_t time_ns) {
  const auto outwards = [&](const Aside& aside) {
    return aside.scope.anchor == 0 ? kNowhere : position(aside.scope, end);
  };
  // Equal ones keep their order; they are few, and most often in order. A sort of the library would allocate.
  for (size_t i = 1; i < scopes.size(); ++i) {
    for (size_t at = i; at > 0 && outwards(scopes[at]) > outwards(scopes[at - 1]); --at)
      std::swap(scopes[at], scopes[at - 1]);
  }
  size_t left = end;
  for (const Aside& aside : scopes) {
    const size_t at = aside.scope.anchor == 0 ? kNowhere : position(aside.scope, end);
    if (at != kNowhere) {
      const size_t next = aside.scope.anchor_inside ? at + 1 : at;
      show(std::min(next, left), left, base());
      left = std::min(next, left);
    } else if (shown_.size() > base()) {
      truncate(base());
    }
    put_back(aside, time_ns);
  }
  show(0, left, base());
}

bool CallPath::bring_up_from_below(const void* token, int64_t time_ns, uint64_t* dropped) {
  sync(time_ns);  // what stands on the scope is where it belongs before the scope goes
  size_t at = scopes_.size();
  while (at > 0 && scopes_[at - 1].token != token) --at;
  if (at-- == 0) {
    // A region may end while its coroutine's frame is off the chain: it comes back to be ended in order.
    for (size_t i = 0; i < parked_.size(); ++i) {
      if (parked_[i].scope.token != token) continue;
      const Aside aside = parked_[i];
      parked_.erase(parked_.begin() + static_cast<std::ptrdiff_t>(i));
      put_back(aside, time_ns);
      entries_.back().slot = aside.entry.slot;  // nothing is added where it ends, so its last place will do
      return true;
    }
    return false;
  }
  const bool region = scopes_[at].kind == ScopeKind::kRegion || scopes_[at].kind == ScopeKind::kPhase;
  for (size_t i = scopes_.size(); i-- > at + 1;) leave(i, time_ns);
  for (size_t i = at + 1; i < scopes_.size(); ++i) {
    if (region || scopes_[i].kind == ScopeKind::kRegion || scopes_[i].kind == ScopeKind::kPhase) {
      aside_.push_back({scopes_[i], entries_[scopes_[i].entry]});
    } else {
      ++*dropped;
    }
  }
  scopes_.cut(at + 1);
  return true;
}

// What stood on the scope that has ended goes on without it.
void CallPath::take_up_aside() {
  const int64_t time_ns = aside_.front().scope.begin_ns;
  const size_t settled = scopes_.size();
  for (Aside& aside : aside_) {
    if (python_ == nullptr) {
      put_back(aside, time_ns);
      continue;
    }
    // A region that stood on the frame of an operator around it stands around what that frame does next.
    const bool region = aside.scope.kind == ScopeKind::kRegion || aside.scope.kind == ScopeKind::kPhase;
    if (region && aside.scope.anchor != 0) aside.scope.anchor_inside = true;
    put_back(aside, time_ns);
  }
  aside_.clear();
  if (python_ == nullptr) return;
  top_ = python_->top();
  bool found = false;
  walked_ = walk(0, &found);
  replace_scopes(false, walked_, settled, time_ns);
}

}  // namespace leadline
