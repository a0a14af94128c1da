// The joined call path of one thread: Python frames, modules, operators, regions and API calls from root to leaf.
//
// Two kinds of things stand on it. *Scopes* (operators, regions, API calls) are pushed and popped by events. *Python
// frames* come and go unseen, so `sync` compares the interpreter's chain with what it saw last time and replaces only
// what differs. Each scope remembers its anchor, the Python frame on which it stands; a walk ends there. An operator
// under an operator with no Python between finds its anchor on top and costs one comparison.
//
// Used by its own thread only. Allocates only when something new appears.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "stack/path_frames.h"
#include "stack/python_source.h"

namespace leadline {

// One level of the path. `slot` belongs to the first subscriber: 0 until it caches something for this level.
struct PathEntry {
  PathFrameId frame{};
  uint64_t slot = 0;
};

enum class ScopeKind : uint8_t { kOperator, kRegion, kPhase, kApi };

struct Scope {
  const void* token = nullptr;  // identifies the begin to its end
  ScopeKind kind = ScopeKind::kOperator;
  bool backward = false;       // an operator run by autograd
  bool deferred = false;       // its place is settled by what begins inside
  bool below_module = false;   // an nn.Module or a phase encloses it
  uint32_t python_base = 0;    // Python frames that lie above it
  uint32_t entry = 0;          // its own entry
  uintptr_t anchor = 0;        // Python frame on which it stands
  bool anchor_inside = false;  // the anchor frame itself shows below the scope (regions)
  int64_t begin_ns = 0;
  int64_t child_ns = 0;  // time of scopes that ended directly inside
  int64_t sequence = -1;
  uint64_t forward_thread = 0;   // of a backward operator
  uint32_t children = 0;         // scopes that ended directly inside
  uint32_t last_child_node = 0;  // the subscriber's, of the last of them
  int64_t last_child_ns = 0;
  PathFrameId last_child_frame{};
  int64_t mark = 0;        // subscriber's note at begin
  int64_t running_ns = 0;  // regions and phases: CPU time while it was the innermost of them
};

class CallPath {
 public:
  explicit CallPath(const PythonSource* python, ModuleNames* modules);

  // Bring the Python part up to date; before every push.
  void sync();
  // As sync, for a region: the frames of the machinery that opens it (contextlib, torch's record_function, ours) are
  // left out and the frame that asked for it stays below.
  void push_region(const void* token, ScopeKind kind, PathFrameId frame);
  void push(const void* token, ScopeKind kind, PathFrameId frame);
  // The scope of a token with everything above it dropped, or nullptr. `dropped` counts scopes that never ended.
  const Scope* find_and_trim(const void* token, uint64_t* dropped) noexcept;
  void pop() noexcept;
  // Drops the Python frames above the innermost scope.
  void trim_to_scope() noexcept { truncate(base()); }
  // Innermost scope of a kind, or nullptr.
  Scope* innermost() noexcept { return scopes_.empty() ? nullptr : &scopes_.back(); }
  // A region of a suspended coroutine comes back as the innermost scope; false when no scope of this token was set
  // aside.
  bool restore_parked(const void* token);
  void clear() noexcept;

  PathFrames& frames() noexcept { return frames_; }
  std::vector<PathEntry>& entries() noexcept { return entries_; }
  std::vector<Scope>& scopes() noexcept { return scopes_; }

 private:
  // A Python frame that the path shows, with the state below it.
  struct Shown {
    RawFrame raw;
    uintptr_t self = 0;  // nn.Module of a module frame
    uintptr_t fingerprint = 0;
    uint32_t entries = 0;  // entries on the path once it is applied
    bool below_module = false;
  };

  size_t walk(uintptr_t stop, bool* found);
  void apply(size_t count, uint32_t base);
  void append(const RawFrame& raw);
  std::span<const PathFrames::ModuleCall> modules_around();
  void park_until_anchored();
  void unpark();
  void restore_parked(size_t index);
  void truncate(uint32_t python_frames) noexcept;
  uint32_t base() const noexcept { return scopes_.empty() ? 0 : scopes_.back().python_base; }
  bool enclosed(uint32_t python_frames) const noexcept;

  const PythonSource* python_;
  PathFrames frames_;
  std::vector<PathEntry> entries_;
  std::vector<Shown> shown_;
  std::vector<Scope> scopes_;
  std::vector<Scope> parked_;
  std::vector<PathEntry> parked_entries_;
  std::vector<RawFrame> walk_;
  std::vector<PathFrames::ModuleCall> around_;
  size_t walked_ = 0;
  uintptr_t top_ = 0;         // innermost Python frame at the last sync
  uint64_t codes_freed_ = 0;  // when `shown_` was last compared
};

}  // namespace leadline
