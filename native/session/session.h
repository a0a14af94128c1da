// One measurement from start to stop in this process. At most one runs at a time. Any thread may call anything.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "base/spin_lock.h"
#include "cct/compiled_operations.h"
#include "collector/collector.h"
#include "monitor/monitor.h"
#include "providers/provider.h"
#include "session/whereabouts.h"
#include "writer/segment.h"

namespace leadline {

struct SessionOptions {
  std::string segment_path;
  bool memory = true;  // for providers, as `shapes`
  bool shapes = false;
  uint64_t max_nodes = 4'000'000;
  double flush_interval_s = 10.0;
  uint64_t trace_max_events = 1'000'000;
};

struct ProcessDetails {
  std::string name;
  int32_t rank = -1;
  int32_t local_rank = -1;
  int64_t start_ns = 0;  // CLOCK_REALTIME when measuring began, as the process's side file says it; 0: keep our own
};

struct SessionCost {
  uint64_t events = 0;
  int64_t callbacks_ns = 0;
  int64_t flush_ns = 0;
  uint64_t held_bytes = 0;
  uint64_t nodes = 0;
  uint32_t threads = 0;
  int64_t steps = 0;
  int64_t paused_ns = 0;
};

class Session {
 public:
  static Session& instance();

  // False with a sentence in *why: one runs already, the monitor has no room for the collector, or memory is short.
  bool start(const SessionOptions& options, std::string* why) noexcept;
  // Stops the providers and writes the last segment with complete = 1.
  WriteResult stop() noexcept;
  // While paused no provider emits what happens, and the collector hears only of device work begun before.
  void pause() noexcept;
  void resume() noexcept;
  bool paused() const noexcept { return paused_.load(std::memory_order_relaxed); }

  // Providers by their names (see providers.h), with or without a session. `own`: what the provider itself takes. None
  // may be called with the GIL held. The answer is the provider's status; `ok` is false for an unknown name.
  ProviderStatus start_provider(const std::string& name, std::map<std::string, ProviderOption> own);
  ProviderStatus stop_provider(const std::string& name);
  // What is known of a device; nothing while no session measures.
  void describe_device(DeviceDescription device);
  // What stands for the titles of a compiler's programs and operations (see CompiledOperations), and which of those
  // that ran nobody has explained yet. Both throw std::bad_alloc; nothing while no session measures.
  void explain_program(std::uint64_t program, CompiledFrame frame);
  void explain_operation(std::uint64_t program, std::string operation, const CompiledParts& parts);
  std::set<UnknownOperation> unexplained_operations() const;
  // How often programs ran by their titles, below something that called them.
  std::map<std::uint64_t, std::uint64_t> titled_runs() const;
  ProviderStatus provider_status(const std::string& name) const;
  // See Provider::rest; nothing happens for an unknown name.
  void rest_provider(const std::string& name, bool rests) noexcept;
  void stop_providers() noexcept;
  WriteResult flush() noexcept;
  bool running() const noexcept { return present_.load(std::memory_order_acquire) != nullptr; }
  void set_process(const ProcessDetails& details);

  void open_trace() noexcept;
  void close_trace() noexcept;
  bool trace_is_open() const noexcept;
  // Forgets what the window has kept so far.
  void take_back_trace() noexcept;
  // What another source has timed of a thread, into the window; and a place of a thread by any number that is always
  // its.
  bool timed(const TimedOperators& operators) noexcept { return Monitor::instance().timed(operators); }
  leadline_context place_of_thread(uint64_t tid, std::string_view name) noexcept;
  // A training step begins now; -1: its number will be told at its end.
  void begin_step(int64_t number) noexcept;
  // Keeps single events of `count` training steps after the first `wait`.
  void trace_steps(int64_t wait, int64_t count) noexcept;
  // See EventWindow::share; false while no session runs.
  void announce_window(const std::string& path);
  bool share_window(const std::string& path, const std::string& parent_path) noexcept;

  SessionCost cost() const;
  // What the last failed write said, or empty.
  std::string write_status() const;
  // Around a fork: the flush thread rests, so that no lock of its is copied in the wrong state and the parent that
  // forks counts one thread less. It may have to wait for a segment that is being written, so the GIL may not be held.
  // Several threads may fork at a time.
  // Everything is told, and no thread writes until exec_failed().
  void before_exec();
  void exec_failed();
  void before_fork();
  void after_fork_in_parent();
  // In the child of a fork: forget what the parent measured and go on into another file. Without a path: measure no
  // more.
  void after_fork(const std::string& segment_path);

 private:
  // Writes segments now and then on a thread of its own.
  class Flusher;

  std::shared_ptr<Collector> collector() const noexcept;
  std::shared_ptr<Flusher> flusher() const noexcept;
  void pause_providers() noexcept;
  void resume_providers() noexcept;
  bool begin(const SessionOptions& options, std::string* why);
  void give_up() noexcept;
  WriteResult write(bool complete) noexcept;
  void describe_process(const std::string& segment_path);

  SessionOptions options_;
  ProcessInfo process_;
  // Any thread may ask while another one stops: who has taken hold of them keeps them.
  std::shared_ptr<Collector> collector_;      // guarded by held_
  std::shared_ptr<Flusher> flusher_;          // guarded by held_
  mutable SpinLock held_;                     // for a moment only
  std::atomic<Collector*> present_{nullptr};  // collector_, which the child of a fork may find torn
  std::mutex changing_;                       // one thread at a time starts, stops, pauses or resumes
  leadline_subscription subscription_ = 0;
  std::atomic<bool> paused_{false};
  mutable std::mutex providers_busy_;  // one call to a provider at a time
  mutable std::mutex writing_;         // one segment at a time; also guards options_, process_ and status_
  SegmentWriter writer_;               // guarded by writing_
  Whereabouts whereabouts_;            // guarded by writing_
  std::string status_;
  std::atomic<int64_t> flush_ns_{0};
  int64_t began_ns_ = 0;                       // when process_ was described; CLOCK_MONOTONIC
  int64_t described_at_ns_ = 0;                // the same; CLOCK_REALTIME. The process may have begun earlier
  std::atomic<uint64_t> writer_bytes_{0};      // what writer_ holds
  std::atomic<uint64_t> trace_max_events_{0};  // of options_, for any thread
};

}  // namespace leadline
