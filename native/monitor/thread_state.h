// Everything the monitor keeps for one thread. Touched by its own thread only, except for the atomics and `next`.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

#include "leadline/monitor.h"
#include "monitor/scope_data.h"
#include "stack/call_path.h"

namespace leadline {

// Where the thread is, for signal handlers on it and for other threads: the place of each open scope as the collector
// last knew it. Deeper than kDepth it stays at the deepest level it holds.
class PublishedPlaces {
 public:
  static constexpr uint32_t kDepth = 64;

  // The Python frame on which a scope stands, with what belongs to it in the low bits, which are free.
  static constexpr uintptr_t kInside = 1;       // the frame itself shows below the scope
  static constexpr uintptr_t kBelowModule = 2;  // an nn.Module or a phase encloses the scope
  static constexpr uintptr_t kUnknown = ~uintptr_t{0};
  static uintptr_t anchor_of(const Scope& scope) noexcept {
    return scope.anchor | (scope.anchor_inside ? kInside : 0) | (scope.below_module ? kBelowModule : 0);
  }

  // A scope has begun, with which `open` are open.
  // `token`: that of the scope; where it lies on the thread's stack, native frames below it are inside the scope.
  void enter(size_t open, leadline_context place, uintptr_t anchor = kUnknown, const void* token = nullptr) noexcept {
    const auto depth = static_cast<uint32_t>(std::min<size_t>(open, kDepth));
    Level& level = levels_[depth - 1];
    level.place.store(place, std::memory_order_relaxed);
    level.anchor.store(open > kDepth ? kUnknown : anchor, std::memory_order_relaxed);
    level.token.store(reinterpret_cast<uintptr_t>(token), std::memory_order_relaxed);
    depth_.store(depth, std::memory_order_release);
  }
  void leave(size_t open) noexcept {
    if (open < depth_.load(std::memory_order_relaxed))
      depth_.store(static_cast<uint32_t>(open), std::memory_order_release);
  }
  // Open scopes that are told apart. Signal-safe, any thread, like all that follow.
  uint32_t depth() const noexcept { return depth_.load(std::memory_order_acquire); }
  leadline_context place(uint32_t level) const noexcept { return levels_[level].place.load(std::memory_order_relaxed); }
  uintptr_t anchor(uint32_t level) const noexcept { return levels_[level].anchor.load(std::memory_order_relaxed); }
  uintptr_t token(uint32_t level) const noexcept { return levels_[level].token.load(std::memory_order_relaxed); }
  // 0: outside every scope.
  leadline_context innermost() const noexcept {
    const uint32_t depth = depth_.load(std::memory_order_acquire);
    return depth == 0 ? 0 : place(depth - 1);
  }

 private:
  struct Level {
    std::atomic<leadline_context> place{0};
    std::atomic<uintptr_t> anchor{0};
    std::atomic<uintptr_t> token{0};
  };
  alignas(64) std::atomic<uint32_t> depth_{0};  // in one line with the outermost levels
  std::array<Level, kDepth> levels_{};
};

struct ThreadState {  // NOLINT(clang-analyzer-optin.performance.Padding): in lines of the cache
  explicit ThreadState(const PythonSource* python, ModuleNames* modules) : path(python, modules) {}

  // One line of the cache for what every event looks at; the path begins with the next.
  alignas(64) std::atomic<uint32_t> busy{0};  // odd: inside an event; who unregisters waits until it has changed
  std::atomic<uint32_t> until_sample{1};      // own cost; 1: the event that comes is measured
  uint64_t version = 0;                       // of the monitor, when this thread last looked
  void* subscriber = nullptr;                 // the in-process subscriber's own state for this thread
  uint64_t life = 0;  // no two threads have the same, also when one takes over the state of the other
  uint32_t operators_open = 0;
  uint32_t unheard = 0;  // scopes that began while measuring was paused, so that nobody keeps them
  char unnamed = 0;      // its address is the token of a scope that has none, while it ends

  alignas(64) CallPath path;
  PublishedPlaces published;
  std::atomic<uint64_t> tid{0};
  int64_t paused_ns = 0;  // of pauses that its clock knows of
  ScopeData data;         // of the callbacks

  // Own cost, measured on events picked at random and scaled when read.
  std::atomic<uint32_t> interval{1};  // what until_sample began at
  bool measures_next() const noexcept { return until_sample.load(std::memory_order_relaxed) == 1; }
  void count_event() noexcept {
    until_sample.store(until_sample.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
  }
  uint32_t random = 0x9E3779B9;
  int64_t sample_began_ns = 0;         // when the provider began to work for it; 0 where it did not tell
  std::atomic<uint64_t> events{0};     // those of intervals that are over
  std::atomic<int64_t> sampled_ns{0};  // of the events measured, each times those of its interval
  std::atomic<uint64_t> sampled{0};    // the events of those intervals
  std::atomic<size_t> held_bytes{0};   // of the frame tables, as of the last sample

  std::atomic<bool> alive{true};
  ThreadState* next = nullptr;  // list of all states, newest first; never shortened
};

}  // namespace leadline
