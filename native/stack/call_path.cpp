#include "stack/call_path.h"

#include <algorithm>

#include "base/losses.h"

namespace leadline {
namespace {

constexpr size_t kWalkRoom = 512;        // frames held by a walk before its buffer grows
constexpr size_t kMaxFrames = 65536;     // deeper stacks are cut at the root side and counted
constexpr size_t kMaxParked = 64;        // suspended regions of one thread
constexpr uint32_t kMaxAboveOpener = 4;  // frames that the machinery itself calls

}  // namespace

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
  parked_entries_.clear();
}

bool CallPath::enclosed(uint32_t python_frames) const noexcept {
  if (python_frames > base()) return shown_[python_frames - 1].below_module;
  return !scopes_.empty() && scopes_.back().below_module;
}

// Fills walk_ (leaf first) up to and including `stop`. Returns the number of frames kept.
size_t CallPath::walk(uintptr_t stop, bool* found) {
  size_t count = python_->walk(top_, walk_.data(), walk_.size(), stop, found);
  if (count > walk_.size() && walk_.size() < kMaxFrames) {
    walk_.resize(std::min(kMaxFrames, count + count / 2));
    count = python_->walk(top_, walk_.data(), walk_.size(), stop, found);
  }
  if (count > walk_.size()) {
    losses().count(LossKind::kPythonFramesTruncated);
    count = walk_.size();
  }
  return count;
}

void CallPath::truncate(uint32_t python_frames) noexcept {
  shown_.resize(python_frames);
  const uint32_t scope_end = scopes_.empty() ? 0 : scopes_.back().entry + 1;
  entries_.resize(python_frames > base() ? shown_.back().entries : scope_end);
}

void CallPath::sync() {
  if (python_ == nullptr) return;
  top_ = python_->top();
  if (!parked_.empty()) unpark();
  const Scope* scope = scopes_.empty() ? nullptr : &scopes_.back();
  const uintptr_t anchor = scope == nullptr ? 0 : scope->anchor;
  const uint32_t from = base();
  if (scope != nullptr && !scope->anchor_inside && top_ == anchor) {
    if (shown_.size() > from) truncate(from);
    return;
  }
  bool found = false;
  walked_ = walk(anchor, &found);
  if (!found) {
    park_until_anchored();
    return apply(walked_, base());
  }
  const bool drop_anchor = scope != nullptr && anchor != 0 && !scope->anchor_inside;
  apply(drop_anchor ? walked_ - 1 : walked_, from);
}

// The chain no longer holds the anchor of the innermost scope: its coroutine is suspended, or its end was never seen.
// Scopes are set aside until one is found whose anchor lies on the chain; walk_ then ends at that anchor.
void CallPath::park_until_anchored() {
  while (!scopes_.empty()) {
    const Scope& scope = scopes_.back();
    size_t at = walked_;
    for (size_t i = 0; i < walked_; ++i) {
      if (walk_[i].frame == scope.anchor) at = i;
    }
    if (scope.anchor == 0 || at < walked_) {
      if (scope.anchor != 0) walked_ = scope.anchor_inside ? at + 1 : at;
      return;
    }
    parked_.push_back(scope);
    parked_entries_.push_back(entries_[scope.entry]);
    if (parked_.size() > kMaxParked) {
      losses().count(LossKind::kRegionUnanchored);
      parked_.erase(parked_.begin());
      parked_entries_.erase(parked_entries_.begin());
    }
    const uint32_t entry = scope.entry;
    const uint32_t python_base = scope.python_base;
    scopes_.pop_back();
    shown_.resize(python_base);
    entries_.resize(entry);
  }
}

// A coroutine runs again: regions that it had open come back where its frame is.
void CallPath::unpark() {
  for (size_t i = parked_.size(); i-- > 0;) {
    bool found = false;
    const size_t count = python_->walk(top_, walk_.data(), walk_.size(), parked_[i].anchor, &found);
    if (!found || parked_[i].anchor == 0 || count > walk_.size()) continue;
    restore_parked(i);
    return;
  }
}

// walk_[0..count) leaf first are the frames to show above `base`; keep the common prefix, append the rest.
void CallPath::apply(size_t count, uint32_t base) {
  // Read before the frames: what dies later is seen the next time.
  const uint64_t freed = python_->codes_freed == nullptr ? 0 : python_->codes_freed->load(std::memory_order_acquire);
  const bool same_codes = python_->codes_freed != nullptr && freed == codes_freed_;
  codes_freed_ = freed;
  uint32_t level = base;
  size_t i = count;
  while (i > 0 && level < shown_.size()) {
    const RawFrame& raw = walk_[i - 1];
    Shown& known = shown_[level];
    if (raw.code != known.raw.code || raw.instruction != known.raw.instruction) break;
    if (!same_codes && known.fingerprint != python_->fingerprint(raw.code)) break;
    if (known.self != 0 && python_->first_local(raw.frame, known.self) != known.self) break;
    known.raw.frame = raw.frame;
    ++level;
    --i;
  }
  if (level < shown_.size()) truncate(level);
  while (i > 0) {
    --i;
    const RawFrame& raw = walk_[i];
    append(raw);
  }
}

void CallPath::append(const RawFrame& raw) {
  Shown shown;
  shown.raw = raw;
  shown.below_module = enclosed(static_cast<uint32_t>(shown_.size()));
  const PathFrames::Statement statement = frames_.statement(raw);
  shown.fingerprint = statement.fingerprint;
  switch (statement.role) {
    case CodeRole::kHidden:
    case CodeRole::kOpener:
      break;
    case CodeRole::kModuleCall: {
      shown.self = python_->first_local(raw.frame, 0);
      if (shown.self == 0) break;
      if (!shown.below_module) entries_.push_back(PathEntry{frames_.named(FrameKind::kPhase, "forward")});
      shown.below_module = true;
      const auto callers = static_cast<size_t>(&raw - walk_.data()) + 1;  // leaf first: those outside follow
      const std::span<const RawFrame> outside(walk_.data() + callers, walked_ - callers);
      entries_.push_back(PathEntry{frames_.module(shown.self, modules_around(), outside)});
      break;
    }
    case CodeRole::kRecompute:
      entries_.push_back(PathEntry{frames_.named(FrameKind::kPhase, "recompute")});
      entries_.push_back(PathEntry{statement.frame});
      shown.below_module = true;
      break;
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
  for (size_t i = shown_.size(); i-- > 0;) {
    if (shown_[i].self != 0) around_.push_back({shown_[i].self, entries_[shown_[i].entries - 1].frame});
  }
  return around_;
}

void CallPath::push(const void* token, ScopeKind kind, PathFrameId frame) {
  Scope scope;
  scope.token = token;
  scope.kind = kind;
  scope.anchor = top_;
  scope.below_module = enclosed(static_cast<uint32_t>(shown_.size())) || kind == ScopeKind::kPhase;
  scope.python_base = static_cast<uint32_t>(shown_.size());
  scope.entry = static_cast<uint32_t>(entries_.size());
  entries_.push_back(PathEntry{frame});
  scopes_.push_back(scope);
}

void CallPath::push_region(const void* token, ScopeKind kind, PathFrameId frame) {
  uintptr_t anchor = 0;
  if (python_ != nullptr) {
    // Take away the machinery that opens regions, with what it calls itself, then the frame that asked: it shows below
    // the region with its own line.
    auto opener = static_cast<uint32_t>(shown_.size());
    const uint32_t lowest = opener > base() + kMaxAboveOpener ? opener - kMaxAboveOpener : base();
    while (opener > lowest && frames_.statement(shown_[opener - 1].raw).role != CodeRole::kOpener) --opener;
    auto keep = static_cast<uint32_t>(shown_.size());
    if (opener > lowest) {
      keep = opener;
      while (keep > base() && frames_.statement(shown_[keep - 1].raw).role == CodeRole::kOpener) --keep;
    }
    if (keep > base()) {
      --keep;
      anchor = shown_[keep].raw.frame;
      // Only where the frame shows is its line one that a person looks for.
      const PathFrames::Statement asked = frames_.statement(shown_[keep].raw);
      if (kind == ScopeKind::kRegion && asked.role == CodeRole::kPlain) frame = frames_.placed(frame, asked.frame);
      truncate(keep);
    } else if (keep < shown_.size()) {
      truncate(keep);
    }
  }
  push(token, kind, frame);
  Scope& scope = scopes_.back();
  scope.anchor_inside = anchor != 0;
  if (anchor != 0) scope.anchor = anchor;
}

const Scope* CallPath::find_and_trim(const void* token, uint64_t* dropped) noexcept {
  *dropped = 0;
  size_t at = scopes_.size();
  while (at > 0 && scopes_[at - 1].token != token) --at;
  if (at == 0) return nullptr;
  *dropped = scopes_.size() - at;
  scopes_.resize(at);
  return &scopes_.back();
}

void CallPath::pop() noexcept {
  const Scope& scope = scopes_.back();
  shown_.resize(scope.python_base);
  entries_.resize(scope.entry);
  scopes_.pop_back();
}

void CallPath::restore_parked(size_t index) {
  const auto at = static_cast<std::ptrdiff_t>(index);
  Scope scope = parked_[index];
  const PathEntry entry = parked_entries_[index];
  parked_.erase(parked_.begin() + at);
  parked_entries_.erase(parked_entries_.begin() + at);
  scope.python_base = static_cast<uint32_t>(shown_.size());
  scope.entry = static_cast<uint32_t>(entries_.size());
  entries_.push_back(entry);
  scopes_.push_back(scope);
}

bool CallPath::restore_parked(const void* token) {
  for (size_t i = 0; i < parked_.size(); ++i) {
    if (parked_[i].token != token) continue;
    restore_parked(i);
    return true;
  }
  return false;
}

}  // namespace leadline
