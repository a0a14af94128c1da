// Folds events into the threads' trees as they come. The first subscriber of the monitor.
//
// Each thread owns its tree, so nothing on the event path locks. Work that belongs under another thread's path hangs
// below a graft.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/device_table.h"
#include "base/losses.h"
#include "cct/compiled_operations.h"
#include "cct/memory_ledger.h"
#include "cct/tree_registry.h"
#include "collector/event_window.h"
#include "collector/forward_threads.h"
#include "collector/lane.h"
#include "monitor/monitor.h"
#include "writer/segment.h"

namespace leadline {

constexpr DeviceType known_type(int32_t given) noexcept {
  return given < 0 || given > 0xff ? DeviceType::kOther : static_cast<DeviceType>(given);
}
// Of GPU calls and work, whose providers may leave it out.
constexpr DeviceType device_type(int32_t given) noexcept { return given == 0 ? DeviceType::kCuda : known_type(given); }

struct CollectorOptions {
  uint64_t max_nodes = 4'000'000;
};

class Collector final : public Subscriber {
 public:
  explicit Collector(const CollectorOptions& options);
  ~Collector() override;

  [[gnu::hot]] bool begin_operator(const leadline_operator_event& op, const void* token, ThreadState& thread) override;
  [[gnu::hot]] bool end_operator(const void* token, int64_t time_ns, ThreadState& thread) override;
  [[gnu::hot]] void on_operator_begin(const leadline_operator_event& op, ThreadState& thread) noexcept override;
  [[gnu::hot]] void on_operator_end(int64_t time_ns, ThreadState& thread) noexcept override;
  void on_event(const leadline_event& event, ThreadState& thread) noexcept override;
  [[gnu::hot]] void on_memory(const leadline_memory_event& event, ThreadState& thread) noexcept override;
  void on_scopes_moved(ThreadState& thread) noexcept override;
  leadline_context context(ThreadState& thread, bool in_event) noexcept override;
  leadline_status on_booking(const leadline_booking& booking, ThreadState& thread,
                             leadline_context* place) noexcept override;
  bool context_in_file(leadline_context context, std::string_view file) const noexcept override;
  leadline_status path_to(leadline_context context, leadline_frame* frames, size_t* count) const noexcept override;
  void on_thread_exit(ThreadState& thread) noexcept override;
  bool on_timed(const TimedOperators& operators, ThreadState& thread) noexcept override;
  leadline_context thread_place(uint64_t tid, std::string_view name, clockid_t cpu, bool new_born) noexcept override;
  void thread_ran(uint64_t tid, int64_t cpu_ns, bool over) noexcept override;

  // Training steps ended so far: told by the program, or else seen at the end of the first optimizer's step.
  int64_t steps() const noexcept { return steps_.load(std::memory_order_relaxed); }

  // A step begins now, after work that belongs to none (or as the first one); -1: its number will be told at its end.
  void begin_step(int64_t number, int64_t time_ns) noexcept;

  // Opens the trace window when `wait` steps have ended and closes it `count` steps later. Called before the first
  // step.
  void trace_steps(int64_t wait, int64_t count, uint64_t max_events) noexcept;

  // Measuring pauses: the threads' CPU clocks stand still, and of memory only is kept what is
  // nobody's. No thread is inside an event that began before.
  void pause() noexcept;
  void resume() noexcept;

  // Brings the threads' CPU times up to date; the flush thread calls it before each segment.
  void refresh_thread_times() noexcept;
  // Where threads are, outside of what the collector books at an end only. Throws std::bad_alloc.
  std::vector<OpenPlace> open_places() const;

  TreeRegistry& trees() noexcept { return trees_; }
  MemoryLedger& ledger() noexcept { return ledger_; }
  EventWindow& window() noexcept { return window_; }
  DeviceTable& devices() noexcept { return devices_; }
  CompiledOperations& compiled() noexcept { return compiled_; }
  size_t held_bytes() const noexcept;
  // How long measuring has rested in all.
  int64_t paused_ns() const noexcept;
  void after_fork() noexcept;

 private:
  Lane* lane(ThreadState& thread) noexcept {
    auto* known = static_cast<Lane*>(thread.subscriber);
    return known != nullptr && known->life == thread.life ? known : make_lane(thread);
  }
  [[gnu::cold]] Lane* make_lane(ThreadState& thread) noexcept;
  static ThreadTree::Place* innermost_place(Lane& lane, CallPath& path) noexcept;
  static ThreadTree::Place* operator_place(Lane& lane, ThreadTree::Place& above, PathFrames& frames,
                                           const leadline_operator_event& op);
  [[gnu::hot]] bool begin_other_operator(const leadline_operator_event& op, const void* token, ThreadState& thread);
  ThreadTree::Place* below_native(Lane& lane, CallPath& path, ThreadTree::Place* above, const void* token,
                                  uint64_t kind) noexcept;
  NodeId resolve_operator(Lane& lane, CallPath& path, const Scope& scope) noexcept;
  void place_wrapper(Lane& lane, CallPath& path, const Scope& wrapper) noexcept;
  void retire(Lane& lane) noexcept;
  // The clock of threads' wall times: `time_ns` less the pauses before it. Under lanes_busy_.
  int64_t measured_ns(int64_t time_ns) const noexcept;
  int64_t measured_now_ns() const noexcept;  // takes it
  [[gnu::cold]] void bind(Lane& lane, uint64_t framework_thread) noexcept;
  NodeId resolve(Lane& lane, CallPath& path) noexcept { return resolve(lane, path, path.entries().size()); }
  // Of the levels before `end` only.
  NodeId resolve(Lane& lane, CallPath& path, size_t end) noexcept;
  NodeId resolve_scope(Lane& lane, CallPath& path) noexcept;
  [[gnu::hot]] NodeId home_backward(const leadline_operator_event& op, CallPath& path, Lane& lane) noexcept;
  [[gnu::hot]] static NodeId settle(Lane& lane, PathEntry& entry, NodeId parent) noexcept;
  void settle_wrapper(Lane& lane, CallPath& path) noexcept;
  NodeId place(Lane& lane, ThreadState& thread, bool in_event = false) noexcept;
  [[gnu::hot]] NodeId backward_parent(Lane& lane, const leadline_operator_event& event) noexcept;
  void on_begin(const leadline_event& event, ThreadState& thread, Lane& lane) noexcept;
  void home_region(leadline_context asked_at, CallPath& path, Lane& lane) noexcept;
  void on_end(const leadline_event& event, ThreadState& thread, Lane& lane) noexcept;
  void run_to_border(Lane& lane, Scope* innermost) noexcept;
  void on_region_begin(CallPath& path, Lane& lane) noexcept;
  void on_region_end(int64_t time_ns, int64_t duration_ns, NodeId node, ThreadState& thread, Lane& lane) noexcept;
  void on_activity(const leadline_gpu_activity_event& event, Lane& lane) noexcept;
  // The part of a piece of work from `from` to `to` of `whole`.
  struct Part {
    uint64_t from = 0;
    uint64_t to = 1;
    uint64_t whole = 1;
    // Rounded where parts meet: those of all parts together are the value.
    int64_t of(int64_t value) const noexcept { return up_to(to, value) - up_to(from, value); }
    int64_t up_to(uint64_t end, int64_t value) const noexcept {
      return end == whole ? value : end == 0 ? 0 : static_cast<int64_t>(Wide{value} * end / whole);
    }
    __extension__ using Wide = __int128;
  };
  NodeId book_activity(const leadline_gpu_activity_event& event, const Part& part, Lane& lane) noexcept;
  NodeId book_shares(const leadline_gpu_activity_event& event, Lane& lane) noexcept;
  NodeId activity_node(const leadline_gpu_activity_event& event, Lane& lane) noexcept;
  NodeId find_activity_node(const leadline_gpu_activity_event& event, Lane& lane) noexcept;
  bool is_place(leadline_context context) const noexcept;
  int64_t step_at(int64_t time_ns) const noexcept;
  bool ends_step(uint64_t here) noexcept;
  void end_step(Lane& lane, int64_t number, int64_t time_ns) noexcept;
  void book_step(Lane& lane, int64_t number, int64_t time_ns) noexcept;
  [[gnu::hot]] NodeId book(Lane& lane, CallPath& path, int64_t duration_ns) noexcept;
  NodeId book_stay(Lane& lane, CallPath& path, int64_t duration_ns) noexcept;
  void book_data_loading(const Scope& scope, int64_t duration_ns, ThreadState& thread, Lane& lane) noexcept;
  void record(const Scope& scope, NodeId node, Lane& lane, int64_t duration_ns,
              const leadline_gpu_api_event* api) noexcept;

  static uint8_t next_number() noexcept;

  uint8_t number_ = next_number();  // not that of the collectors before: places that those gave are none of ours
  TreeRegistry trees_;
  MemoryLedger ledger_;
  EventWindow window_;
  DeviceTable devices_;
  CompiledOperations compiled_;
  ForwardThreads forward_threads_;
  std::atomic<leadline_wrapped> wrapped_{nullptr};  // the same from every wrapper
  std::atomic<int64_t> steps_{0};
  std::atomic<bool> steps_given_{false};
  std::atomic<uint64_t> step_place_{0};  // where optimizer steps end: the only place that counts
  // Where one ended since one ended there, and how often: see ends_step().
  std::atomic<uint64_t> other_place_{0};
  std::atomic<uint32_t> other_count_{0};
  std::atomic<int64_t> last_step_ns_{0};
  std::atomic<int64_t> backward_ns_{0};  // wall time in outermost operators of the backward pass
  // When the last steps ended, by number: device work is reported after the step that it ran in.
  std::array<std::atomic<int64_t>, 64> step_ends_ns_{};
  std::atomic<int64_t> steps_ended_{0};  // counted here; numbers given by the program may begin anywhere
  // The window by steps; -1: none asked for.
  int64_t trace_from_ = -1;
  int64_t trace_to_ = -1;
  uint64_t trace_max_events_ = 0;
  // A thread that was asked for before its first event; nobody writes its tree yet.
  struct Silent {
    uint64_t tid;
    ThreadTree* tree;
    clockid_t cpu;
    int64_t cpu_begin_ns;
    int64_t cpu_stands_ns;      // when measuring paused last; less than nothing: it was over
    int64_t seen_cpu_ns;        // when it was looked at last; less than nothing: that cannot be told
    int64_t gone_since_ns = 0;  // when it could be looked at no more; 0: it can
  };
  ThreadTree& tree_for(uint64_t tid);
  // What it has run while measuring ran; `cpu_ns`: in all.
  int64_t ran_ns(const Silent& silent, int64_t cpu_ns) const noexcept;
  void refresh_silent() noexcept;

  std::vector<Silent> silent_;                // guarded by lanes_busy_
  std::vector<std::unique_ptr<Lane>> lanes_;  // guarded by lanes_busy_
  std::atomic<bool> paused_{false};           // changed under lanes_busy_
  int64_t paused_since_ns_ = 0;               // guarded by lanes_busy_
  int64_t paused_ns_ = 0;                     // all pauses that are over; guarded by lanes_busy_
  mutable SpinLock lanes_busy_;
};

}  // namespace leadline
