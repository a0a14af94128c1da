// Calls of a GPU's API that the program makes, from begin to end: events of the monitor, and what their work will be
// asked for when its record comes.
//
// Runs inside the program's calls: nothing here throws, waits, or allocates on the path of a launch. A call that a
// runtime makes inside one of its own calls is the same call to the user, so only the outer one becomes an event; the
// inner one's correlation id is joined to the outer one's place.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "gpu/launch_tables.h"
#include "leadline/monitor.h"

namespace leadline::gpu {

class Recorder;

class ApiCalls {
 public:
  explicit ApiCalls(LaunchTables& tables) : tables_(tables) {}

  // Whether begins are of interest. What began is counted out in any case.
  bool is_listening() const noexcept { return state_.load(std::memory_order_acquire) != kClosed; }
  // Whether calls are told, and not only remembered.
  bool is_open() const noexcept { return tells(state_.load(std::memory_order_relaxed)); }

  // The thread enters a call. True: it is the outermost one and begin() must follow; false: all is done.
  bool enter(leadline_gpu_kind kind, bool makes_work, std::uint32_t correlation) noexcept;
  void begin(const leadline_gpu_api_event& call, bool makes_work) noexcept;
  // The thread leaves a call. `address`: device memory that the call took or gave back, where it did.
  void leave(leadline_gpu_kind kind, bool makes_work, bool failed, std::optional<std::uint64_t> address) noexcept;
  // Whether leave() would leave the outermost call, whose result then matters.
  bool is_outermost() const noexcept;

  // What the calling thread is inside of.
  struct Open {
    leadline_context place = 0;
    leadline_gpu_kind kind = LEADLINE_GPU_OTHER;
    std::uint32_t correlation = 0;
    bool any = false;
  };
  Open open_call() const noexcept;
  // The open call became a node of a graph: nothing runs for it now.
  void captured() noexcept;

  // The calling thread enters a region or phase, and leaves the innermost one.
  void region_begins(std::int64_t time_ns, leadline_context context) noexcept;
  void region_ends(std::int64_t time_ns) noexcept;
  // The calling thread's place in the log of launches.
  std::uint32_t place_in_log() noexcept;

  // After close() nothing begins any more; a call that is open is ended when its end is told.
  void close() noexcept { state_.store(kClosed, std::memory_order_seq_cst); }
  void open() noexcept { state_.store(stretch(), std::memory_order_seq_cst); }
  // Calls are remembered, so that their work is known for what it is and nothing is taken for older than it is, but not
  // told; a call that is open now is not told to end.
  void pause() noexcept { state_.store(stretch() | kPaused, std::memory_order_seq_cst); }

  // Calls that are open now will not be told to end: callbacks were off. Those that somebody heard to begin must have
  // ended, see LaunchLog::any_inside().
  void forget_open_calls() noexcept { session_.store(next_session(), std::memory_order_relaxed); }

  // Waits become metrics here when the vendor gives no records of them.
  void set_time_waits(bool on) noexcept { time_waits_.store(on, std::memory_order_relaxed); }
  void set_recorder(Recorder* recorder) noexcept { recorder_.store(recorder, std::memory_order_release); }
  Recorder* recorder() const noexcept { return recorder_.load(std::memory_order_acquire); }
  std::uint64_t count() const noexcept { return tables_.launches.log()->calls(); }

 private:
  void book_memory(leadline_gpu_kind kind, std::optional<std::uint64_t> address, bool told) noexcept;
  void put_place(std::int64_t time_ns, leadline_context context) noexcept;
  leadline_context region() const noexcept;
  static std::uint32_t next_session() noexcept;

  LaunchTables& tables_;
  std::atomic<std::uint32_t> session_{next_session()};  // what a thread kept of an earlier one is void
  std::atomic<Recorder*> recorder_{nullptr};
  // Closed, or the number of the stretch between two changes, with kPaused.
  static constexpr std::uint32_t kClosed = 0;
  static constexpr std::uint32_t kPaused = 1;
  static bool tells(std::uint32_t state) noexcept { return state != kClosed && (state & kPaused) == 0; }
  std::uint32_t stretch() noexcept { return 2 * (stretches_.fetch_add(1, std::memory_order_relaxed) + 1); }
  std::atomic<std::uint32_t> stretches_{0};
  std::atomic<std::uint32_t> state_{kClosed};
  std::atomic<bool> time_waits_{true};
};

}  // namespace leadline::gpu
