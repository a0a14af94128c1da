#include "stack/call_path.h"

#include <algorithm>

#include "base/losses.h"

namespace leadline {
namespace {

constexpr size_t kWalkRoom = 512;        // frames held by a walk before its buffer grows
constexpr size_t kMaxFrames = 65536;     // deeper stacks are cut at the root side and counted
constexpr uint32_t kMaxAboveOpener = 4;  // frames that the machinery itself calls

}  // namespace

constinit __attribute__((tls_model("initial-exec"))) thread_local CallAnchors* CallAnchors::t_mine = nullptr;

CallPath::CallPath(const PythonSource* python, ModuleNames* modules) : python_(python), frames_(python, modules) {
  walk_.resize(kWalkRoom);
  entries_.reserve(128);
  shown_.reserve(128);
  scopes_.reserve(64);
}

void CallPath::clear() noexcept {
  entries_.clear();
  shown_.clear();
  scopes_.clear();
  parked_.clear();
  parked_bits_ = 0;
  aside_.clear();
  departed_.clear();
  native_known_.clear();
  callers_.clear();
  moved_ = false;
}

// Fills walk_ (leaf first) up to and including `stop`. Returns the number of frames kept.
size_t CallPath::walk(uintptr_t stop, bool* found) {
  size_t count = python_->walk(top_, walk_.data(), walk_.size(), stop, found);
  if (count > walk_.size() && walk_.size() < kMaxFrames) {
    walk_.resize(std::min(kMaxFrames, count + count / 2));
    count = python_->walk(top_, walk_.data(), walk_.size(), stop, found);
  }
  cut_ = count > walk_.size();
  return std::min(count, walk_.size());
}

void CallPath::sync_with_chain(int64_t at_ns) {
  if (!sync_by_comparing()) sync_by_walking(at_ns);
  note_calls();
  if (checked_.load(std::memory_order_relaxed)) [[unlikely]]
    check_walk();
}

// The innermost call that has not returned, if the frames that it keeps are shown above the innermost scope.
const CallAnchors::Anchor* CallPath::standing_call() const noexcept {
  const CallAnchors::Anchor* call = anchors_.innermost();
  if (call == nullptr || call->level <= base() || call->level > shown_.size()) return nullptr;
  return shown_[call->level - 1].anchor == call->call ? call : nullptr;
}

// The path is in step: the callers of calls that have not returned are remembered where they show.
void CallPath::note_calls() noexcept {
  size_t level = shown_.size();
  for (size_t at = anchors_.size(); at-- > 0;) {
    CallAnchors::Anchor& call = anchors_[at];
    if (call.level != 0 && call.level <= shown_.size() && shown_[call.level - 1].anchor == call.call) return;
    while (level > base() && shown_[level - 1].raw.frame != call.frame) --level;
    if (level == base()) return;  // around the innermost scope, which ends walks itself
    shown_[level - 1].anchor = call.call;
    call.level = static_cast<uint32_t>(level);
  }
}

// The chain is compared with the frames that are shown, and only what is new is walked. False when that tells nothing.
bool CallPath::sync_by_comparing() {
  if (python_->codes_freed == nullptr) return false;
  if (python_->codes_freed->load(std::memory_order_acquire) != codes_freed_) return false;
  const CallAnchors::Anchor* const call = standing_call();
  if (call != nullptr && call->frame == top_) {
    if (shown_.size() > call->level) truncate(call->level);
    return true;
  }
  const size_t from = call != nullptr ? call->level : base();
  if (shown_.size() <= from && call == nullptr) return false;
  const bool by_scope = call == nullptr && !scopes_.empty();
  const uintptr_t end = call != nullptr ? call->frame : by_scope ? scopes_.back().anchor : 0;
  const bool inside = by_scope && scopes_.back().anchor_inside;
  size_t kept = shown_.size() > from ? python_->matching(top_, shown_.data(), from, shown_.size(), end, inside) : from;
  if (kept == kNotAligned && call != nullptr) kept = from;
  if (kept == kNotAligned || (kept == from && (inside || end == 0))) return false;
  const NativeSource* const native = native_.load(std::memory_order_acquire);
  for (;;) {
    const uintptr_t stop = kept > from ? shown_[kept - 1].raw.frame : end;
    bool found = stop == top_;
    walked_ = found ? 1 : walk(stop, &found);
    if (!found || (stop != top_ && cut_)) return false;
    const size_t alike = native == nullptr ? kept : kept_of(*native, from, kept, walked_ - 1);
    if (alike == kept) break;
    if (alike == from && (inside || end == 0)) return false;
    kept = alike;
  }
  if (walked_ == 1) {
    if (kept < shown_.size()) truncate(static_cast<uint32_t>(kept));
    return true;
  }
  if (parked_in_walk(walked_ - 1)) return false;
  show(0, walked_ - 1, static_cast<uint32_t>(kept));
  return true;
}

void CallPath::sync_by_walking(int64_t at_ns) {
  if (frames_.adopt_roles()) truncate(base());
  const Scope* scope = scopes_.empty() ? nullptr : &scopes_.back();
  const uintptr_t anchor = scope == nullptr ? 0 : scope->anchor;
  bool found = false;
  walked_ = walk(anchor, &found);
  if (cut_) losses().count(LossKind::kPythonFramesTruncated);
  if (found && !cut_ && anchor != 0 && scope->anchor_code != 0 && walk_[walked_ - 1].code != scope->anchor_code) {
    walked_ = walk(0, &found);
    found = false;
  }
  const size_t end = found && anchor != 0 && !scope->anchor_inside ? walked_ - 1 : walked_;
  if (!found || parked_in_walk(end)) return replace_scopes(found, end, scopes_.size(), at_ns);
  show(0, end, base());
}

// walk_[begin..end) leaf first are the frames to show above `base`; keep the common prefix, append the rest.
void CallPath::show(size_t begin, size_t end, uint32_t base) {
  // Read before the frames: what dies later is seen the next time.
  const uint64_t freed = python_->codes_freed == nullptr ? 0 : python_->codes_freed->load(std::memory_order_acquire);
  const bool same_codes = python_->codes_freed != nullptr && freed == codes_freed_;
  codes_freed_ = freed;
  const NativeSource* const native = native_.load(std::memory_order_acquire);
  size_t evaluations = native == nullptr ? 0 : find_evaluations(end);
  uint32_t level = base;
  size_t i = end;
  while (i > begin && level < shown_.size()) {
    const RawFrame& raw = walk_[i - 1];
    ShownFrame& known = shown_[level];
    if (raw.code != known.raw.code || raw.instruction != known.raw.instruction) break;
    if (!same_codes && known.fingerprint != python_->fingerprint(raw.code)) break;
    if (known.self != 0 && python_->first_local(raw.frame, known.self) != known.self) break;
    if (native != nullptr) [[unlikely]] {
      const bool entered = python_->entered_from_c(raw.frame);
      if (!called_alike(*native, known, entered, evaluations - 1)) break;
      evaluations -= entered ? 1 : 0;
    }
    if (known.raw.frame != raw.frame) known.anchor = 0;
    known.raw.frame = raw.frame;
    ++level;
    --i;
  }
  if (level < shown_.size()) truncate(level);
  while (i > begin) {
    --i;
    const bool entered = native != nullptr && python_->entered_from_c(walk_[i].frame);
    const uint32_t callers = entered ? append_callers(*native, --evaluations) : 0;
    append(walk_[i]);
    shown_.back().callers = callers;
  }
}

void CallPath::append(const RawFrame& raw) {
  ShownFrame shown;
  shown.raw = raw;
  shown.below_module = enclosed(static_cast<uint32_t>(shown_.size()));
  const PathFrames::Statement statement = frames_.statement(raw);
  shown.fingerprint = statement.fingerprint;
  shown.suspends = statement.suspends;
  shown.module = shown_.empty() ? 0 : shown_.back().module;
  switch (statement.role) {
    case CodeRole::kHidden:
    case CodeRole::kOpener:
      break;
    case CodeRole::kModuleCall:
      shown.self = python_->first_local(raw.frame, 0);
      if (shown.self == 0) break;
      if (const auto module = frames_.module(shown.self, modules_around(), raw.frame); module) {
        if (!shown.below_module) entries_.push_back(PathEntry{frames_.named(FrameKind::kPhase, "forward")});
        entries_.push_back(PathEntry{*module});
      } else {
        shown.self = 0;
        break;
      }
      shown.below_module = true;
      shown.module = static_cast<uint32_t>(shown_.size()) + 1;
      break;
    case CodeRole::kRecompute:
      entries_.push_back(PathEntry{frames_.named(FrameKind::kPhase, "recompute")});
      entries_.push_back(PathEntry{statement.frame});
      shown.below_module = true;
      break;
    case CodeRole::kBlockEntry:
    case CodeRole::kPlain:
      entries_.push_back(PathEntry{statement.frame});
      break;
  }
  shown.entries = static_cast<uint32_t>(entries_.size());
  shown_.push_back(shown);
}

// The modules being called, innermost first.
std::span<const PathFrames::ModuleCall> CallPath::modules_around() {
  around_.clear();
  for (size_t next = shown_.empty() ? 0 : shown_.back().module; next != 0;) {
    const ShownFrame& call = shown_[next - 1];
    around_.push_back({call.self, entries_[call.entries - 1].frame});
    next = next > 1 ? shown_[next - 2].module : 0;
  }
  return around_;
}

void CallPath::push_region(const void* token, ScopeKind kind, PathFrameId frame) {
  ShownFrame asking;
  if (python_ != nullptr) {
    // Take away the machinery that opens regions, with what it calls itself, then the frame that asked: it shows below
    // the region with its own line.
    const auto opens = [this](uint32_t level) {
      const CodeRole role = frames_.statement(shown_[level].raw).role;
      return role == CodeRole::kOpener || role == CodeRole::kBlockEntry;
    };
    auto opener = static_cast<uint32_t>(shown_.size());
    const uint32_t lowest = opener > base() + kMaxAboveOpener ? opener - kMaxAboveOpener : base();
    while (opener > lowest && !opens(opener - 1)) --opener;
    auto keep = opener > lowest ? opener : static_cast<uint32_t>(shown_.size());
    if (opener > lowest) {
      // A generator run by such machinery is part of it: what it opens is meant for the block of who called that.
      do {
        while (keep > base() && opens(keep - 1)) --keep;
      } while (keep > base() + 1 && shown_[keep - 1].suspends && opens(keep - 2) && --keep != 0);
    }
    if (keep > base()) {
      --keep;
      // Of machinery that does not show, the outermost frame: those above it may return before the scope ends.
      const auto hidden = [this](uint32_t level) {
        return frames_.statement(shown_[level].raw).role == CodeRole::kHidden;
      };
      while (keep > base() && hidden(keep) && hidden(keep - 1)) --keep;
      asking = shown_[keep];
      // Only where the frame shows is its line one that a person looks for.
      const PathFrames::Statement asked = frames_.statement(asking.raw);
      if (kind == ScopeKind::kRegion && asked.role == CodeRole::kPlain) frame = frames_.placed(frame, asked.frame);
    }
    if (keep < shown_.size()) truncate(keep);
  }
  Scope& scope = push(token, kind, frame);
  scope.anchor_inside = asking.raw.frame != 0;
  if (!scope.anchor_inside) return;
  scope.anchor = asking.raw.frame;
  scope.anchor_code = asking.raw.code;
  scope.suspends = asking.suspends;
}

}  // namespace leadline
