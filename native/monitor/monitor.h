// The monitor as the core sees it. Providers hand over events; subscribers get them with the thread's state.
//
// Promises of the event path: no lock, no exception, no GIL; allocation only when a thread or a statement is new.
// Unsubscribing waits until no thread is inside a callback (membarrier makes that free for the event path).
#pragma once

#include <time.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>

#include "leadline/monitor.h"
#include "monitor/observing.h"
#include "monitor/this_thread.h"
#include "monitor/thread_state.h"
#include "stack/native_source.h"

namespace leadline {

// As PathFrames::operator_named() takes it.
inline std::optional<uint16_t> stable_name(const leadline_operator_event& op) noexcept {
  return op.stable_name != 0 ? std::optional(op.name_generation) : std::nullopt;
}

// The core's own subscriber, the collector: the paths of all threads hold its state (PathEntry::slot, members of Scope,
// ThreadState::subscriber and published), so there is one at a time. All others are callbacks, with leadline_event's
// scope_data and thread_data for what they keep.
// What a thread did at one place, as somebody else has timed it.
struct TimedOperators {
  leadline_context place = 0;
  leadline_context thread = 0;         // a place of the thread's
  uint64_t correlation = 0;            // events of one run of a program have one; 0: none
  std::span<const int64_t> begins_ns;  // CLOCK_MONOTONIC
  std::span<const int64_t> durations_ns;
};

class Subscriber {
 public:
  virtual ~Subscriber() = default;
  // Operators while it alone hears of them. The common ones it puts on the path, or books and takes away, itself; false
  // for those that it leaves to the monitor, of which it is told by the calls below. May throw std::bad_alloc.
  virtual bool begin_operator(const leadline_operator_event& op, const void* token, ThreadState& thread) = 0;
  virtual bool end_operator(const void* token, int64_t time_ns, ThreadState& thread) = 0;
  // At BEGIN the scope is the innermost one of the thread's path; at END it is still there. Operators and
  // memory come by calls of their own, since they are what there is most of.
  virtual void on_operator_begin(const leadline_operator_event& op, ThreadState& thread) noexcept = 0;
  virtual void on_operator_end(int64_t time_ns, ThreadState& thread) noexcept = 0;
  virtual void on_event(const leadline_event& event, ThreadState& thread) noexcept = 0;
  virtual void on_memory(const leadline_memory_event& event, ThreadState& thread) noexcept = 0;
  // Scopes have left the path or come back to it (see CallPath::departed); every entry needs its place again.
  virtual void on_scopes_moved(ThreadState& thread) noexcept = 0;
  virtual leadline_context context(ThreadState& thread, bool in_event) noexcept = 0;
  // Frames and totals are checked. `place`: as in leadline_monitor_book(). Callbacks hear what is booked only.
  virtual leadline_status on_booking(const leadline_booking&, ThreadState&, leadline_context* /*place*/) noexcept {
    return LEADLINE_OK;
  }
  // Whether a frame on the path to a place that context() gave is of this file; any thread.
  virtual bool context_in_file(leadline_context context, std::string_view file) const noexcept = 0;
  // As leadline_monitor_path().
  virtual leadline_status path_to(leadline_context, leadline_frame* /*frames*/, size_t* /*count*/) const noexcept {
    return LEADLINE_ERROR_UNAVAILABLE;
  }
  virtual void on_thread_exit(ThreadState& thread) noexcept = 0;
  // Operators of the trace window that another source has timed. False where a place is unknown.
  virtual bool on_timed(const TimedOperators&, ThreadState&) noexcept { return true; }
  // See Monitor::thread_place() and thread_ran().
  virtual leadline_context thread_place(uint64_t /*tid*/, std::string_view /*name*/, clockid_t /*cpu*/,
                                        bool /*new_born*/) noexcept {
    return 0;
  }
  virtual void thread_ran(uint64_t /*tid*/, int64_t /*cpu_ns*/, bool /*over*/) noexcept {}
};

class Monitor {
 public:
  static constexpr uint32_t kMaxSubscribers = ScopeData::kSubscribers;
  static constexpr uint32_t kCostSample = 64;  // one event of so many is measured

  static Monitor& instance() noexcept {
    Monitor* const known = instance_.load(std::memory_order_acquire);
    return known != nullptr ? *known : make_instance();
  }

  // Set before the first event; nullptr: no Python frames.
  void set_python(const PythonSource* python) noexcept { python_ = python; }
  const PythonSource* python() const noexcept { return python_; }
  // Native frames at operators; nullptr: there are none.
  void set_native(const NativeSource* native) noexcept {
    native_.store(native, std::memory_order_release);
    CallPath::show_native(native);
  }
  const NativeSource* native() const noexcept { return native_.load(std::memory_order_acquire); }
  ModuleNames& modules() noexcept { return modules_; }
  ObservingFunctions& observing() noexcept { return observing_; }

  leadline_status subscribe(uint32_t domains, Subscriber* subscriber, leadline_subscription* out) noexcept;
  leadline_status subscribe(uint32_t domains, leadline_callback callback, void* user,
                            leadline_subscription* out) noexcept;
  // Other domains for a subscription; when it returns no callback of those that left it runs or will run.
  leadline_status change_domains(leadline_subscription subscription, uint32_t domains) noexcept;
  leadline_status unsubscribe(leadline_subscription subscription) noexcept;

  // Measuring pauses: the core's own subscriber hears of `domains` only, and of the ends of scopes whose begins it
  // heard, as of the moment of the pause: the clock of open scopes stands still. What begins is nobody's, and neither
  // is its end, also when it ends later. When pause() returns no thread is inside an event that began before.
  leadline_status pause(leadline_subscription subscription, uint32_t domains) noexcept;
  // Without a subscription: who paused is gone.
  leadline_status resume(leadline_subscription subscription, uint32_t domains) noexcept;
  bool paused() const noexcept { return paused_at_.load(std::memory_order_acquire) != kRuns; }
  // For providers that do not build events while measuring is paused: something begins whose end they will tell.
  void begun_unheard() noexcept;
  void finalize() noexcept;

  uint32_t active(uint32_t domains) const noexcept { return active_.load(std::memory_order_relaxed) & domains; }
  void emit(const leadline_event& event) noexcept;
  // The same for operators, without an event to build.
  [[gnu::hot]] void begin_operator(const leadline_operator_event& op, const void* token) noexcept;
  [[gnu::hot]] void end_operator(const void* token) noexcept;
  [[gnu::hot]] void memory(const leadline_memory_event& event) noexcept;
  // For providers that work before they hand over an event: counts that work as own cost too.
  void event_comes() noexcept {
    ThreadState* const state = t_state;
    if (state != nullptr && state->measures_next()) [[unlikely]]
      begin_sample(*state);
  }

  leadline_status book(const leadline_booking& booking, leadline_context* place) noexcept;

  // The place of a thread itself, for who measures threads from outside; one without events becomes known by it. `cpu`:
  // its CPU clock; `new_born`: it began while measuring ran. 0: nobody listens.
  leadline_context thread_place(uint64_t tid, std::string_view name, clockid_t cpu, bool new_born) noexcept;
  // Into the trace window, for what was asked for while it was open; what began before it is left out.
  bool timed(const TimedOperators& operators) noexcept;
  // What a thread whose place was asked for ran in all, as far as known, at its end (`over`) or when it is looked at
  // no more.
  void thread_ran(uint64_t tid, int64_t cpu_ns, bool over) noexcept;
  leadline_context context() noexcept;
  bool context_in_file(leadline_context context, std::string_view file) noexcept;
  leadline_status path_to(leadline_context context, leadline_frame* frames, size_t* count) noexcept;
  leadline_status call_path(uint32_t sources, leadline_frame* frames, size_t* count) noexcept;

  // Signal-safe: the calling thread's innermost place, 0 where none is known.
  leadline_context published() const noexcept;
  leadline_status threads(leadline_thread* threads, size_t* count) const noexcept;
  // What another thread has published; nullptr where it has no events. Serves the next thread when that one has ended.
  const PublishedPlaces* published_by(uint64_t tid) const noexcept;

  // Scopes that are open now are forgotten by their threads: they belong to another session or process.
  void forget_open_scopes() noexcept { version_.fetch_add(kForgets, std::memory_order_seq_cst); }
  // As above, and what the subscriber keeps for threads is void: the next session has another collector. When it
  // returns no thread is inside an event that began before.
  void forget_subscriber_state() noexcept;
  // Own cost starts from zero.
  void reset_cost() noexcept;
  // In the child of a fork: the other threads are gone.
  void after_fork() noexcept;

  struct Cost {
    uint64_t events = 0;
    int64_t callbacks_ns = 0;
    size_t held_bytes = 0;
  };
  Cost cost() const noexcept;
  // States there are, of threads that live and of ended ones whose state waits for the next thread.
  size_t thread_states() const noexcept;

 private:
  struct Slot {
    std::atomic<uint32_t> domains{0};
    Subscriber* subscriber = nullptr;
    leadline_callback callback = nullptr;
    void* user = nullptr;
    uint32_t generation = 0;
    bool leaving = false;  // unsubscribed, but a thread may still be inside; guarded by change_
  };
  class Busy;
  static constexpr uint64_t kForgets = 1;
  static constexpr uint64_t kGenerations = uint64_t{1} << 24;
  static constexpr uint64_t kPauses = uint64_t{1} << 44;
  static constexpr int64_t kRuns = INT64_MAX;
  static constexpr uint32_t kAnyDomain = ~uint32_t{0};

  Monitor() noexcept;
  static Monitor& make_instance() noexcept;
  inline static constinit std::atomic<Monitor*> instance_{nullptr};
  ThreadState* thread() noexcept;
  ThreadState* new_thread() noexcept;
  void give_back(ThreadState& state) noexcept;
  [[gnu::cold]] void bring_up_to_date(ThreadState& state) noexcept;
  void forget_scopes(ThreadState& state) noexcept;
  void follow_pause(ThreadState& state) noexcept;
  bool heard_after_all(uint32_t domain) noexcept;
  bool awaited(const void* token, ScopeKind kind, uint32_t domain) noexcept;
  leadline_status add(uint32_t domains, Subscriber* subscriber, leadline_callback callback, void* user,
                      leadline_subscription* out) noexcept;
  bool place(uint32_t domains, Subscriber* subscriber, leadline_callback callback, void* user,
             leadline_subscription* out) noexcept;
  bool set_domains(leadline_subscription subscription, uint32_t domains) noexcept;
  bool reclaim() noexcept;
  void begin(leadline_event& event, ThreadState& thread);
  void end(leadline_event& event, ThreadState& thread);
  bool find_scope(const void* token, ScopeKind kind, int64_t time_ns, ThreadState& thread);
  void end_scope(ThreadState& thread);
  void begin_operator_in(ThreadState& thread, const leadline_operator_event& op, const void* token);
  void end_operator_in(ThreadState& thread, const void* token, int64_t now_ns);
  template <typename Handle>
  bool short_way(ThreadState* thread, const std::atomic<Subscriber*>& sole, const Handle& handle) noexcept;
  template <typename Handle>
  bool measured_short_way(const Handle& handle);
  template <typename Handle>
  bool contained(ThreadState& thread, const Handle& handle) noexcept;
  [[gnu::cold]] static void begin_sample(ThreadState& thread) noexcept;
  [[gnu::cold]] void scopes_moved(ThreadState& thread) noexcept;
  template <typename Handle>
  void guarded(ThreadState& thread, int64_t sample_began_ns, const Handle& handle) noexcept;
  template <typename Direct, typename Make>
  void hand_out(uint32_t domain, Scope* scope, ThreadState& thread, const Direct& direct, const Make& make);
  void deliver(const leadline_event& event, Scope* scope, ThreadState& thread);
  // The core's own subscriber where it hears of any of `domains`; for a thread that is inside an event.
  Subscriber* core(uint32_t domains) const noexcept {
    const uint32_t used = used_.load(std::memory_order_acquire);
    for (uint32_t i = 0; i < used; ++i) {
      const Slot& slot = slots_[i];
      if ((slot.domains.load(std::memory_order_acquire) & domains) != 0 && slot.subscriber != nullptr)
        return slot.subscriber;
    }
    return nullptr;
  }
  template <typename Answer, typename Ask>
  Answer ask_core(Answer otherwise, const Ask& ask) noexcept;
  void wait_until_idle() noexcept;
  void refresh_active() noexcept;

  // What every event reads stands in one line of the cache, which hardly anybody writes.
  alignas(64) std::atomic<const NativeSource*> native_{nullptr};
  std::atomic<Subscriber*> sole_{nullptr};            // it alone hears of operators
  std::atomic<Subscriber*> sole_of_memory_{nullptr};  // or of memory
  // From low to high bits: how often open scopes became void, how often the subscriber's state with them, and how often
  // measuring paused or went on. One word, since a thread that saw a new part beside an old one would never look at the
  // other again.
  std::atomic<uint64_t> version_{0};
  std::atomic<uint32_t> active_{0};
  std::atomic<uint32_t> used_{0};  // slots ever used; the event path looks no further
  bool fence_needed_ = false;

  const PythonSource* python_ = nullptr;
  ModuleNames modules_;
  ObservingFunctions observing_;
  std::array<Slot, kMaxSubscribers> slots_;
  // When measuring paused, on a clock that stands still in pauses (CLOCK_MONOTONIC less paused_ns_), or kRuns.
  std::atomic<int64_t> paused_at_{kRuns};
  std::atomic<int64_t> paused_ns_{0};  // in all pauses that are over
  std::atomic<ThreadState*> threads_{nullptr};
  std::mutex change_;                      // subscribe and unsubscribe only
  std::atomic<int64_t> clock_cost_ns_{0};  // of one reading, which the measuring of own cost adds
};

}  // namespace leadline
