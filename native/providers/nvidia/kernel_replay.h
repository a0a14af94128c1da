// Counters that a device cannot count at once: CUPTI runs single kernels again until all passes are done, between
// which it puts the device's memory back.
//
// Asked for only: meanwhile kernels of the context run one after the other, and the thread that launches waits. A
// stretch of a few launches is counted for each window that the budget allows, however long they take; it begins and
// ends inside the launches of one thread, since CUPTI numbers kernels in the order of their launches. Where that order
// would not be known the stretch is not used: launches of other threads, graphs (which run as they are), and other
// contexts of the device.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "gpu/bounded_calls.h"
#include "gpu/replayed_launches.h"
#include "gpu/sampling_windows.h"
#include "providers/nvidia/call_trace.h"
#include "providers/nvidia/counter_plan.h"
#include "providers/nvidia/cupti_library.h"
#include "providers/nvidia/provider.h"

namespace leadline::nvidia {

struct KernelReplayOptions {
  std::vector<std::string> metrics;  // of counter_names()
  double budget = 0.02;              // share of the time
  double window_s = 0.05;            // 0: windows are opened and closed by who asks, as tests do
  std::size_t at_once = 32;          // launches in one stretch
};

KernelReplayOptions replay_options(const Options& options);

class KernelReplay {
 public:
  KernelReplay(const CuptiLibrary& library, KernelReplayOptions options);
  ~KernelReplay();
  KernelReplay(const KernelReplay&) = delete;
  KernelReplay& operator=(const KernelReplay&) = delete;

  // False where this CUPTI cannot, said in details().
  bool begin();

  // In callbacks of CUPTI, around the outermost call that launches; `device` -1: unknown.
  enum class Launch : std::uint8_t { kKernel, kGraph };
  struct Call {
    leadline_context place = 0;
    std::uint32_t id = 0;
    std::int64_t stream = -1;      // -1: not known
    const char* kernel = nullptr;  // its mangled name, valid for the time of the callback
  };
  bool is_busy() const noexcept { return busy_.load(std::memory_order_acquire); }
  void entering(void* context, std::int32_t device, Launch what, const Call& call) noexcept {
    if (is_busy()) enter(context, device, what, call);
  }
  void captured() noexcept;  // the open launch became a node of a graph and runs nothing
  // True: the launch was replayed.
  bool leaving(bool failed) noexcept { return is_busy() && leave(failed); }
  void context_destroyed(void* context) noexcept;
  // The child of a fork: our threads are not here.
  void abandon() noexcept;

  // No stretch begins any more, the last one is taken. False: a call into CUPTI has not come back, so this must not be
  // destroyed.
  bool stop();
  void release() noexcept;

  gpu::SamplingWindows& windows() noexcept { return windows_; }
  gpu::ReplayedLaunches& launches() noexcept { return launches_; }
  ReplayDetails details() const;

 private:
  struct Target;
  struct Stretch {
    Target* target = nullptr;  // null: none is open
    std::thread::id thread;
    std::vector<std::uint32_t> calls;
    std::vector<std::int64_t> ended_ns;
    std::int64_t opened_ns = 0;
    std::uint32_t open_call = 0;  // 0: the thread is in no launch
    std::int64_t entered_ns = 0;
    bool mixed = false;  // another thread launched meanwhile
  };

  void enter(void* context, std::int32_t device, Launch what, const Call& call) noexcept;
  bool leave(bool failed) noexcept;
  Target* target_of(void* context, std::int32_t device, std::unique_lock<std::mutex>& lock);
  bool set_up(Target& target, std::string* why);
  bool make_image(Target& target);
  bool may_count(std::unique_lock<std::mutex>& lock) noexcept;
  void open_stretch(Target& target);
  bool is_full(const Stretch& stretch) const;
  bool configure(Target& target, cupti::Result* result);
  void close_stretch();
  void read(Target& target);
  void refuse(const std::string& sentence);
  std::string refusal(cupti::Result result, const char* doing) const;

  const CuptiLibrary& library_;
  const KernelReplayOptions options_;
  const RangeFunctions& call_;
  gpu::ReplayedLaunches launches_;

  // A stretch is wanted or open, or nothing has been set up yet: launches come to enter().
  std::atomic<bool> busy_{true};
  // The thread of the stretch that is open, the only one that waits for mutex_ in a launch: whoever holds it may be
  // asking CUPTI for what takes long.
  std::atomic<std::thread::id> counting_{};
  std::atomic<bool> passed_{false};  // since the last stretch a launch went on without waiting for mutex_
  mutable std::mutex mutex_;         // of everything below
  bool wanted_ = false;
  bool prepared_ = false;  // the first context that launched is set up, or refused
  bool ended_ = false;
  std::map<void*, std::unique_ptr<Target>> targets_;
  Stretch stretch_;
  ReplayDetails said_;
  std::set<std::string> sentences_;
  const std::chrono::milliseconds limit_ = answer_limit();  // of CUPTI's answers
  gpu::BoundedCalls calls_;
  gpu::SamplingWindows windows_;
};

}  // namespace leadline::nvidia
