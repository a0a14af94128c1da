// Everything that lives while measuring: tables, the fold, the thread that asks the SDK for finished records. Made by
// start, kept until no callback of the SDK can be inside it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "gpu/activity_fold.h"
#include "gpu/clock_relation.h"
#include "gpu/recording.h"
#include "gpu/sampling_windows.h"
#include "gpu/scratch_memory.h"
#include "providers/amd/callbacks.h"
#include "providers/amd/provider.h"
#include "providers/amd/source.h"
#include "providers/amd/traced_graphs.h"

namespace leadline::amd {

class Measuring {
 public:
  Measuring(const Options& options, Source& source);
  ~Measuring();
  Measuring(const Measuring&) = delete;
  Measuring& operator=(const Measuring&) = delete;

  // False with one sentence in *message.
  bool start(std::string* message, bool paused);
  void pause();
  void resume();
  bool flush(double timeout_s);
  // Counts what was still in flight.
  void stop();
  // A fork child: no call into the SDK or the monitor, no waiting for a thread that is not here. The subscriptions it
  // leaves in the monitor are handed over.
  void abandon(leadline_subscription* places, leadline_subscription* activities) noexcept;
  Details details() const;
  // After stop(): no callback of the SDK is running in it, so it may be destroyed.
  bool left_alone() const noexcept { return left_alone_; }

  // From here on the SDK's own, at the process's end.
  static void sdk_is_ending() noexcept;
  static bool sdk_has_ended() noexcept;

  // Callbacks of the SDK.
  Callbacks& callbacks() noexcept { return callbacks_; }
  void fold(sdk::RecordHeader** headers, std::size_t count, std::uint64_t dropped) noexcept;
  // The same of roctracer.
  void fold_traced(const char* begin, const char* end) noexcept;
  // With the first HIP call, so that a program that makes none has no thread of ours.
  void start_thread() noexcept {
    if (!thread_wanted_.exchange(true, std::memory_order_relaxed)) make_thread();
  }

 private:
  static void on_place_changed(const leadline_event* event, void* user);
  static void on_activity(const leadline_event* event, void* user);
  template <class Each>
  void fold_each(std::uint64_t count, std::uint64_t dropped, const Each& each) noexcept;
  void take(const gpu::Work& work) noexcept;
  void take_of_graph(const gpu::Work& work, std::uint32_t graph) noexcept;
  void make_thread() noexcept;
  void make_windows();
  template <class Each>
  void each_window(const Each& each) {
    for (const auto* windows : {&windows_, &counting_windows_}) {
      if (*windows) each(**windows);
    }
  }
  void describe_samples(Details& details) const;
  bool learn_devices() noexcept;
  void tell_contradiction() noexcept;
  void describe_devices() const;
  void run();
  void settle();
  void settle_samples(std::int64_t until_ns);
  void settle_scratch(std::int64_t until_ns);
  void look_for_silence(bool at_end);
  std::string why_silent() const;
  bool fetch();

  Options options_;
  Source& source_;
  gpu::LaunchTables tables_;
  Graphs graphs_;
  Callbacks callbacks_;
  gpu::ActivityFold fold_;
  std::unique_ptr<gpu::Recorder> recorder_;
  leadline_subscription places_ = 0;
  leadline_subscription activities_ = 0;
  std::int64_t silent_since_ns_ = 0;  // launches were seen and no record
  bool silence_told_ = false;
  PcSampler* const sampler_;                       // null: instructions are not sampled
  DispatchCounter* const counters_;                // null: counters are not read
  std::unique_ptr<gpu::SamplingWindows> windows_;  // of samples
  std::unique_ptr<gpu::SamplingWindows> counting_windows_;

  // Everything below is guarded by fold_mutex_ unless atomic; calls of the program never take it.
  mutable std::mutex fold_mutex_;
  const Agents* agents_ = nullptr;
  gpu::ScratchMemory scratch_;
  TracedGraphs traced_graphs_;
  bool contradiction_told_ = false;
  gpu::ClockRelation clock_;
  std::uint64_t dropped_ = 0;
  std::int64_t fold_ns_ = 0;

  std::mutex wake_mutex_;
  std::condition_variable wake_;
  bool ending_ = false;
  bool left_alone_ = false;
  std::atomic<bool> thread_wanted_{false};
  std::thread thread_;
};

}  // namespace leadline::amd
