// What happens at the begin and end of a followed call, and at contexts, modules and graphs.
//
// Runs inside the program's CUDA calls: nothing here throws, waits, or allocates on the path of a launch. A driver call
// made by the runtime inside one of its own calls is the same call to the user, so only the outer one becomes an event;
// the inner one's correlation id is joined to the outer one's place.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "gpu/launch_tables.h"
#include "gpu/marks.h"
#include "leadline/monitor.h"
#include "providers/nvidia/api_names.h"
#include "providers/nvidia/cupti_library.h"

namespace leadline::gpu {
class Recorder;
}

namespace leadline::nvidia {

class Callbacks {
 public:
  // Waits become metrics here when CUPTI gives no synchronisation records (`time_waits`).
  Callbacks(const CuptiFunctions& cupti, const ApiTable& calls, gpu::LaunchTables& tables,
            std::shared_ptr<gpu::MarksRegistry> marks)
      : cupti_(cupti), calls_(calls), tables_(tables), marks_(std::move(marks)) {}

  void handle(cupti::Domain domain, std::uint32_t cbid, const void* data) noexcept;

  void set_time_waits(bool on) noexcept { time_waits_.store(on, std::memory_order_relaxed); }
  void set_recorder(gpu::Recorder* recorder) noexcept { recorder_.store(recorder, std::memory_order_release); }
  // After close() nothing begins any more; a call that is open is ended when its end is told.
  void close() noexcept { state_.store(kClosed, std::memory_order_seq_cst); }
  void open() noexcept { state_.store(stretch(), std::memory_order_seq_cst); }
  // Calls are remembered, so that their work is known for what it is and nothing is taken for older than it is, but not
  // told; a call that is open now is not told to end.
  void pause() noexcept { state_.store(stretch() | kPaused, std::memory_order_seq_cst); }
  void resume() noexcept { open(); }
  bool is_open() const noexcept { return tells(state_.load(std::memory_order_relaxed)); }
  std::uint64_t calls() const noexcept { return count_.load(std::memory_order_relaxed); }
  bool graphs_seen() const noexcept { return graphs_seen_.load(std::memory_order_relaxed); }

  // The calling thread's place changed for a reason other than an API call.
  void mark(std::int64_t time_ns, leadline_context context) noexcept;

 private:
  void enter(const ApiCall& call, const cupti::CallbackData& data, std::uint32_t now) noexcept;
  void leave(const ApiCall& call, const cupti::CallbackData& data) noexcept;
  void resource(cupti::Resource which, const cupti::ResourceData& data, bool told) noexcept;
  void graph(cupti::Resource which, const cupti::GraphData& data, bool told) noexcept;
  void book_memory(const ApiCall& call, const cupti::CallbackData& data, std::int64_t bytes, bool told) noexcept;
  std::int32_t device_of(void* context) noexcept;
  std::int64_t stream_of(const ApiCall& call, const cupti::CallbackData& data) noexcept;

  static std::uint32_t next_session() noexcept;

  const CuptiFunctions& cupti_;
  const ApiTable& calls_;
  gpu::LaunchTables& tables_;
  const std::uint32_t session_ = next_session();  // what a thread kept of an earlier one is void
  std::shared_ptr<gpu::MarksRegistry> marks_;
  std::atomic<gpu::Recorder*> recorder_{nullptr};
  // Closed, or the number of the stretch between two changes, with kPaused.
  static constexpr std::uint32_t kClosed = 0;
  static constexpr std::uint32_t kPaused = 1;
  static bool tells(std::uint32_t state) noexcept { return state != kClosed && (state & kPaused) == 0; }
  std::uint32_t stretch() noexcept { return 2 * (stretches_.fetch_add(1, std::memory_order_relaxed) + 1); }
  std::atomic<std::uint32_t> stretches_{0};
  std::atomic<std::uint32_t> state_{kClosed};
  std::atomic<bool> time_waits_{true};
  std::atomic<bool> graphs_seen_{false};
  std::atomic<std::uint64_t> count_{0};
};

}  // namespace leadline::nvidia
