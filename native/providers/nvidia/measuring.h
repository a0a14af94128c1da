// Everything that lives while CUPTI is subscribed: tables, buffers, the thread that folds. Made by start, kept until
// the process can no longer be inside one of its callbacks.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "gpu/activity_fold.h"
#include "gpu/bounded_calls.h"
#include "gpu/buffer_pool.h"
#include "gpu/clock_relation.h"
#include "gpu/recording.h"
#include "providers/nvidia/call_trace.h"
#include "providers/nvidia/callbacks.h"
#include "providers/nvidia/driver.h"
#include "providers/nvidia/kernel_replay.h"
#include "providers/nvidia/pc_sampling.h"
#include "providers/nvidia/pm_sampling.h"
#include "providers/nvidia/provider.h"
#include "providers/nvidia/subscription.h"

namespace leadline::nvidia {

// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): there is one, and members stand in the order of their use
class Measuring {
 public:
  Measuring(const Options& options, Driver driver, CuptiLibrary library, const gpu::KernelSources& sources);
  ~Measuring();
  Measuring(const Measuring&) = delete;
  Measuring& operator=(const Measuring&) = delete;

  // False with one sentence in *message (and *holder). `inside_cuda_start`: the driver cannot be asked yet; the thread
  // that folds begins with the first context, so that a program that makes none has none of ours.
  bool start(std::string* message, std::string* holder, bool inside_cuda_start, bool paused);
  // What the program starts from here on is not told, see provider.h; what it has started is.
  void pause();
  void resume();
  bool flush(double timeout_s);
  // Off again: callbacks, records, subscription, CUPTI itself, the thread. Counts what was still in flight.
  void stop();
  // A fork child: no call into CUDA, CUPTI or the monitor, no waiting for a thread that is not here. The subscriptions
  // it leaves in the monitor are handed over.
  void abandon(leadline_subscription* places, leadline_subscription* activities) noexcept;

  void sample_window(bool open);

  Details details() const;
  // After stop(): no callback of CUPTI is running in it, so it may be destroyed.
  bool left_alone() const noexcept { return left_alone_; }
  // CUPTI has ceased to answer; and whether it has answered since.
  bool hangs() const noexcept { return hangs_.load(std::memory_order_relaxed); }
  bool is_back() const noexcept {
    return !asking_.is_stuck() && flushing_since_ns_.load(std::memory_order_relaxed) == 0;
  }
  bool lost_device() const noexcept { return fatal_.load(std::memory_order_relaxed) && !hangs(); }

 private:
  static void on_callback(void* user, cupti::Domain domain, std::uint32_t cbid, const void* data);
  static void on_requested(std::uint8_t** buffer, std::size_t* size, std::size_t* most);
  static void on_completed(void* context, std::uint32_t stream, std::uint8_t* buffer, std::size_t size,
                           std::size_t valid);
  static void on_code(const void* image, std::size_t bytes, std::uint64_t* hash);
  static void on_place_changed(const leadline_event* event, void* user);
  static void on_activity(const leadline_event* event, void* user);

  void sample_contexts(cupti::Domain domain, std::uint32_t cbid, const void* data) noexcept;
  void sample_launch(cupti::Domain domain, std::uint32_t cbid, const void* data) noexcept;
  void begin_with(void* context, std::int32_t device) noexcept;
  void settle_samples(std::int64_t until_ns);
  void start_thread();
  void learn_devices() noexcept;
  void run();
  void rest_if_paused_long() noexcept;
  void follow_launches_that_are_missed() noexcept;
  void drain();
  void fold_buffer(const gpu::FullBuffer& full);
  bool fetch();
  bool finalize();
  void offer_buffers();
  void keep_what_cupti_holds();
  void describe_devices() const;
  bool ask(const char* what, std::function<void()> calls);

  Options options_;
  Driver driver_;
  CuptiLibrary library_;
  std::uint32_t version_;
  std::vector<gpu::DeviceInfo> devices_;
  ApiTable calls_;
  gpu::LaunchTables tables_;
  std::unique_ptr<gpu::BufferPool> buffers_ = std::make_unique<gpu::BufferPool>();
  Callbacks callbacks_;
  Subscription subscription_;
  gpu::ActivityFold fold_;
  std::unique_ptr<PcSampler> sampler_;    // null: instructions are not asked for
  std::unique_ptr<PmSampler> counters_;   // null: no counters are asked for
  std::unique_ptr<KernelReplay> replay_;  // null: kernels are not replayed
  bool sampling_ = false;                 // this and the next two are set before callbacks are enabled
  bool counting_ = false;
  bool replaying_ = false;
  std::unique_ptr<gpu::Recorder> recorder_;
  leadline_subscription places_ = 0;
  leadline_subscription activities_ = 0;

  // Everything below is guarded by fold_mutex_ unless atomic; callbacks of CUPTI never take it.
  mutable std::mutex fold_mutex_;
  gpu::ClockRelation clock_;
  std::uint64_t dropped_ = 0;
  std::int64_t fold_ns_ = 0;
  std::atomic<bool> fatal_{false};
  std::atomic<bool> finalizing_{false};
  std::atomic<bool> finalized_{false};

  std::timed_mutex rest_mutex_;
  std::int64_t paused_since_ns_ = 0;  // under rest_mutex_; 0: not paused
  std::atomic<bool> rests_{false};    // CUPTI neither records nor calls back; changed under rest_mutex_

  std::mutex wake_mutex_;
  std::condition_variable wake_;
  bool ending_ = false;
  bool left_alone_ = false;
  std::atomic<bool> ready_{false};
  std::atomic<bool> flushes_itself_{false};                 // CUPTI hands over finished buffers each flush interval
  std::atomic<std::int64_t> flushing_since_ns_{0};          // the thread that folds is in CUPTI; 0: it is not
  std::atomic<bool> hangs_{false};                          // CUPTI does not answer
  bool ended_ = false;                                      // the thread that folds; of wake_mutex_
  const std::chrono::milliseconds limit_ = answer_limit();  // of CUPTI's answers
  gpu::BoundedCalls asking_;
  std::thread thread_;
};

}  // namespace leadline::nvidia
