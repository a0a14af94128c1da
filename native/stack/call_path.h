// The joined call path of one thread: Python frames, modules, operators, regions and API calls from root to leaf.
//
// Two kinds of things stand on it. *Scopes* (operators, regions, API calls) are pushed and popped by events. *Python
// frames* come and go unseen, so `sync` compares the interpreter's chain with what it saw last time and replaces only
// what differs. Each scope remembers its anchor, the Python frame on which it stands; a walk ends there. An operator
// under an operator with no Python between finds its anchor on top and costs one comparison.
//
// Regions need not nest. One whose coroutine is suspended, or that stands on another one that ends first, *leaves* the
// path and may come back to it elsewhere; its clock stands still meanwhile, and what it took until then is handed out
// by departed(). So every nanosecond of a thread belongs to one innermost scope.
//
// Used by its own thread only. Allocates only when something new appears.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "stack/call_anchors.h"
#include "stack/native_source.h"
#include "stack/path_frames.h"
#include "stack/python_source.h"
#include "stack/stack_of.h"

namespace leadline {

// One level of the path. `slot` belongs to the collector: 0 until it caches something for this level.
struct PathEntry {
  PathFrameId frame{};
  uint64_t slot = 0;
};

enum class ScopeKind : uint8_t { kOperator, kRegion, kPhase, kApi };

// In the order in which they are needed: what an operator without anything special asks of its scope stands in the
// first line of the cache.
struct alignas(64) Scope {
  const void* token = nullptr;  // identifies the begin to its end
  ScopeKind kind = ScopeKind::kOperator;
  bool backward = false;         // an operator run by autograd
  bool deferred = false;         // its place is settled by what begins inside
  bool below_module = false;     // an nn.Module or a phase encloses it
  bool anchor_inside = false;    // the anchor frame itself shows below the scope (regions)
  bool suspends = false;         // the anchor is a generator's or a coroutine's frame
  bool returned = false;         // it has come back to the path, and nobody has taken note of it yet
  bool unheard = false;          // the core's own subscriber was not told its begin, so neither is its end
  void* place = nullptr;         // the subscriber's, of its node while it stays where it began; nullptr: ask its entry
  int64_t begin_ns = 0;          // of its present stay on the path
  int64_t child_ns = 0;          // time of scopes inside, of those directly below it, since then
  uint32_t children = 0;         // scopes that ended directly inside
  uint32_t last_child_node = 0;  // the subscriber's, of the last of the children
  uint32_t python_base = 0;      // Python frames that lie above it
  uint32_t entry = 0;            // its own entry
  uint32_t data_row = 0;         // what callbacks keep for it, see monitor/scope_data.h; 0: nothing
  PathFrameId last_child_frame{};
  int64_t last_child_ns = 0;
  int64_t earlier_ns = 0;  // time of its stays before
  uintptr_t anchor = 0;    // Python frame on which it stands
  int64_t sequence = -1;
  uint64_t forward_thread = 0;  // of a backward operator
  uintptr_t anchor_code = 0;    // code of that frame, 0 where the frame cannot have ended before the scope
  uintptr_t stack = 0;          // native stack pointer at its begin: native frames outside of it have larger addresses
  int64_t mark = 0;             // subscriber's note at begin
  int64_t parts_mark = 0;       // and another one
  int64_t paused_ns = 0;        // of its time so far, in pauses: no part of any figure
  int64_t running_ns = 0;       // regions and phases: CPU time while it was the innermost of them
  uint32_t flags = 0;           // LEADLINE_REGION_FLAG_..., of phases
};

class CallPath {
 public:
  explicit CallPath(const PythonSource* python, ModuleNames* modules);

  // Bring the Python part up to date; before every push. Scopes that move do so at `at_ns`, the time of the event that
  // is handled, so that none begins to stand anywhere after it has ended; 0: now.
  void sync(int64_t at_ns = 0) {
    if (python_ == nullptr) return;
    top_ = python_->top();
    if (scopes_.empty()) {
      if (top_ == 0 && shown_.empty()) return;
    } else if (const Scope& scope = scopes_.back(); top_ == scope.anchor && !scope.anchor_inside) {
      if (shown_.size() > scope.python_base) truncate(scope.python_base);
      return;
    }
    sync_with_chain(at_ns);
  }
  // As push, for a region: the frames of the machinery that opens it (contextlib, torch's record_function, ours) are
  // left out and the frame that asked for it stays below.
  void push_region(const void* token, ScopeKind kind, PathFrameId frame);
  Scope& push(const void* token, ScopeKind kind, PathFrameId frame, uint64_t slot = 0) {
    const auto python_frames = static_cast<uint32_t>(shown_.size());
    entries_.push_back(PathEntry{frame, slot});
    const bool below_module = kind == ScopeKind::kPhase || enclosed(python_frames);
    Scope& scope = scopes_.emplace_back();
    scope.token = token;
    scope.kind = kind;
    scope.anchor = top_;
    scope.stack = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
    scope.below_module = below_module;
    scope.python_base = python_frames;
    scope.entry = static_cast<uint32_t>(entries_.size() - 1);
    return scope;
  }
  // Makes the scope of a token the innermost one, because it ends at `time_ns`; false when there is none. What stands
  // on it and goes on comes back with pop(); operators inside an operator cannot go on and are dropped.
  bool bring_up(const void* token, int64_t time_ns, uint64_t* dropped) {
    *dropped = 0;
    if (!scopes_.empty() && scopes_.back().token == token) [[likely]]
      return true;
    return bring_up_from_below(token, time_ns, dropped);
  }
  void pop() {
    const Scope& scope = scopes_.back();
    shown_.cut(scope.python_base);
    entries_.cut(scope.entry);
    scopes_.pop_back();
    if (!aside_.empty()) [[unlikely]]
      take_up_aside();
  }
  // Scopes wait to be put back, or the clock stands still.
  bool is_disturbed() const noexcept { return !aside_.empty() || stopped_ns_ != INT64_MAX; }
  // Drops the Python frames above the innermost scope.
  void trim_to_scope() noexcept { truncate(base()); }
  // Innermost scope of a kind, or nullptr.
  Scope* innermost() noexcept { return scopes_.empty() ? nullptr : &scopes_.back(); }
  void clear() noexcept;

  // A stay on the path that is over while the scope goes on elsewhere or later. `scope` as it was, without what this
  // stay added. Where a frame has returned and nothing has run inside its regions, they make no new stay: they are
  // moved with their clocks running.
  struct Departed {
    uint64_t slot;  // of its entry
    int64_t elapsed_ns;
    Scope scope;
  };
  // True once after scopes have left or come back; whoever keeps times takes note of departed() then.
  bool take_moved() noexcept {
    const bool moved = moved_;
    moved_ = false;
    return moved;
  }
  std::vector<Departed>& departed() noexcept { return departed_; }

  // While measuring is paused the clock of the scopes stands still.
  void stop_clock(int64_t at_ns) noexcept;
  // It goes on; `paused_ns` passed since it last did.
  void run_clock(int64_t paused_ns) noexcept;
  // `now_ns`, or when the clock stopped.
  int64_t time(int64_t now_ns) const noexcept { return std::min(now_ns, stopped_ns_); }
  // Whether a scope with this token has begun and not ended.
  bool holds(const void* token) const noexcept;

  // How many entries the frames outside of a Python frame have, its own included unless `inside`; kNotAligned where the
  // path does not show it.
  size_t entries_outside(uintptr_t frame, bool inside) const noexcept {
    for (size_t level = shown_.size(); level-- > 0;) {
      if (shown_[level].raw.frame != frame) continue;
      if (!inside) return shown_[level].entries;
      return level == 0 ? 0 : shown_[level - 1].entries;
    }
    return kNotAligned;
  }
  // Python frames on the path, and how many entries those outside of one of them have, its own included.
  size_t shown() const noexcept { return shown_.size(); }
  size_t entries_up_to(size_t level) const noexcept { return shown_[level].entries; }

  // See PythonSource::home().
  uintptr_t innermost_evaluation() const {
    return python_ == nullptr || python_->home == nullptr ? 0 : python_->home();
  }

  // That of the innermost one around an address on this thread's stack.
  uintptr_t evaluation_around(uintptr_t address);
  // Native frames of C that calls Python stand between the Python frames (native_callers.cpp); nullptr: they do not.
  // For the paths of all threads.
  static void show_native(const NativeSource* source) noexcept;

  // For tests (walk_check.cpp): from now on compare with whole walks, or no longer. Returns what was found until now.
  struct WalkCheck {
    uint64_t checked;
    uint64_t wrong;
  };
  static WalkCheck check_walks(bool on) noexcept;

  PathFrames& frames() noexcept { return frames_; }
  // Calls of this path's thread, for who follows them; to be cleared when the path serves another one.
  CallAnchors& anchors() noexcept { return anchors_; }
  StackOf<PathEntry>& entries() noexcept { return entries_; }
  StackOf<Scope>& scopes() noexcept { return scopes_; }
  // Every scope that has not ended, also those that are parked or set aside.
  template <typename Visit>
  void for_each_scope(const Visit& visit) const {
    for (const Scope& scope : scopes_) visit(scope);
    for (const Aside& aside : parked_) visit(aside.scope);
    for (const Aside& aside : aside_) visit(aside.scope);
  }

 private:
  // A scope that is off the path.
  struct Aside {
    Scope scope;
    PathEntry entry;
    bool runs_on = false;  // it is only moved: its clock did not stop
  };

  size_t walk(uintptr_t stop, bool* found);
  static std::atomic<bool> checked_;
  static std::atomic<const NativeSource*> native_;
  void check_walk() const;
  [[gnu::hot]] void sync_with_chain(int64_t at_ns);
  const CallAnchors::Anchor* standing_call() const noexcept;
  void note_calls() noexcept;
  [[gnu::hot]] bool sync_by_comparing();
  void sync_by_walking(int64_t at_ns);
  void show(size_t begin, size_t end, uint32_t base);
  void append(const RawFrame& raw);
  struct Callers {
    uint32_t number = 0;
    uintptr_t home = 0;  // of the evaluation that they called
    uintptr_t end = 0;
    NativeWords words;
    std::vector<PathFrameId> frames;
  };
  void find_homes(size_t wanted);
  size_t find_evaluations(size_t end);
  uint32_t append_callers(const NativeSource& source, size_t evaluation);
  bool called_alike(const NativeSource& source, const ShownFrame& shown, bool entered, size_t evaluation) const;
  size_t kept_of(const NativeSource& source, size_t from, size_t kept, size_t inside);
  PathFrameId native_frame(const NativeSource& source, uintptr_t address);
  std::span<const PathFrames::ModuleCall> modules_around();
  void truncate(uint32_t python_frames) noexcept {
    shown_.cut(python_frames);
    const uint32_t scope_end = scopes_.empty() ? 0 : scopes_.back().entry + 1;
    entries_.cut(python_frames > base() ? shown_.back().entries : scope_end);
  }
  uint32_t base() const noexcept { return scopes_.empty() ? 0 : scopes_.back().python_base; }
  bool enclosed(uint32_t python_frames) const noexcept {
    if (python_frames > base()) return shown_[python_frames - 1].below_module;
    return !scopes_.empty() && scopes_.back().below_module;
  }

  // Scopes that do not nest (scope_moves.cpp).
  bool bring_up_from_below(const void* token, int64_t time_ns, uint64_t* dropped);
  void take_up_aside();
  void leave(size_t index, int64_t time_ns);
  void lift(size_t index, int64_t time_ns);
  bool may_run_on(size_t first, size_t end) const noexcept;
  bool off_chain(const Scope& scope, size_t end) const noexcept;
  bool is_elsewhere(const Scope& scope) const noexcept;
  void place(std::vector<Aside>& scopes, size_t end, int64_t time_ns);
  void replace_scopes(bool anchored, size_t end, size_t settled, int64_t at_ns);
  void anchor_anew(Scope& scope, const Scope* around) const noexcept;
  void park(const Aside& scope);
  size_t position(const Scope& scope, size_t end) const noexcept;
  bool parked_in_walk(size_t end) const noexcept;
  void put_back(const Aside& scope, int64_t time_ns);

  // What every event needs stands together, in few lines of the cache.
  const PythonSource* python_;
  uintptr_t top_ = 0;               // innermost Python frame at the last sync
  int64_t stopped_ns_ = INT64_MAX;  // when the clock of the scopes stopped; it runs: never
  bool moved_ = false;
  bool cut_ = false;  // the last walk had more frames than are kept
  StackOf<Scope> scopes_;
  StackOf<PathEntry> entries_;
  StackOf<ShownFrame> shown_;
  std::vector<Aside> aside_;  // between bring_up() and pop(), outermost first

  PathFrames frames_;
  CallAnchors anchors_;
  std::vector<Aside> parked_;    // of suspended coroutines, outermost first
  uint64_t parked_bits_ = 0;     // a bit for each of their anchors
  std::vector<Aside> moved_to_;  // of one change of the path, kept for its memory
  std::vector<Departed> departed_;
  std::vector<RawFrame> walk_;
  std::vector<PathFrames::ModuleCall> around_;
  std::vector<uintptr_t> homes_;
  size_t evaluations_ = 0;  // known in homes_
  std::vector<Callers> callers_;
  uint32_t callers_made_ = 0;
  std::unordered_map<uintptr_t, PathFrameId> native_known_;  // by the address of the call
  size_t walked_ = 0;
  uint64_t codes_freed_ = 0;  // when `shown_` was last compared
};

}  // namespace leadline
