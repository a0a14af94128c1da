// Samples of the program counter by CUPTI, in windows that cost no more than was asked for.
//
// A thread of its own only says when samples are wanted. CUPTI is called by the thread that launches, where the driver
// begins and ends a launch: its code is loaded then, and no other part of the program is inside the driver for it. (A
// thread of ours that started and stopped sampling whatever the program did hung programs on an H100.) What is taken
// goes to gpu::InstructionSamples, which knows the kernels. Nothing here throws past its border, nothing waits without
// end where it can be helped, and what CUPTI refuses is one sentence, after which the rest of the provider goes on as
// without. PcSwitches: the other ways, for finding out what a driver bears.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "gpu/bounded_calls.h"
#include "gpu/code_objects.h"
#include "gpu/instruction_samples.h"
#include "gpu/sampling_windows.h"
#include "providers/nvidia/call_trace.h"
#include "providers/nvidia/cupti_library.h"
#include "providers/nvidia/driver.h"
#include "providers/nvidia/pc_sampling_abi.h"
#include "providers/nvidia/pc_switches.h"
#include "providers/nvidia/provider.h"

namespace leadline::nvidia {

struct PcSamplingOptions {
  cupti::SamplingMode mode = cupti::SamplingMode::kContinuous;
  double budget = 0.02;      // share of the time
  double window_s = 0.02;    // 0: windows are opened and closed by who asks, as tests do
  std::uint32_t period = 0;  // a sample every 2^period cycles, 5 to 31; 0: what CUPTI chooses
  std::string code_folder;   // where code is kept; empty: nowhere
  std::uint64_t code_bytes = 256u << 20;
  PcSwitches switches;
};

PcSamplingOptions sampling_options(const Options& options);

class PcSampler {
 public:
  PcSampler(const CuptiLibrary& library, const Driver& driver, PcSamplingOptions options);
  ~PcSampler();
  PcSampler(const PcSampler&) = delete;
  PcSampler& operator=(const PcSampler&) = delete;

  // False where this CUPTI cannot sample, said in details().
  bool begin();
  // No window is opened any more, the last one is taken, CUPTI's sampling is off. False: a call into CUPTI has not come
  // back, so this must not be destroyed.
  bool stop();
  // The child of a fork: our threads are not here.
  void abandon() noexcept;

  // In callbacks of CUPTI, on the program's threads.
  void context_created(void* context, std::int32_t device) noexcept;
  // Around the driver's call that launches a kernel; `stream`: what the program gave, where that is known.
  void launch_begins(void* context, void* stream) noexcept {
    if (launches_.load(std::memory_order_relaxed) < options_.switches.after) {
      launches_.fetch_add(1, std::memory_order_relaxed);
    } else if (wanted_.load(std::memory_order_acquire) || open_.load(std::memory_order_relaxed) > 0) {
      meet(context, stream, true);
    }
  }
  void launch_ends(void* context) noexcept {
    if (open_.load(std::memory_order_relaxed) > 0) meet(context, nullptr, false);
  }
  // A stream of the program's begins or ends to be captured; meanwhile the device must not be waited for.
  void capture(bool begins) noexcept;
  void context_destroyed(void* context) noexcept;
  void code_unloading(void* context) noexcept;

  // At the begin of the outermost call that launches: where it stands. Until the thread's next launch.
  struct StreamOfLaunch {
    void* context = nullptr;
    void* stream = nullptr;
    bool per_thread = false;
  };
  static void launching(const gpu::KernelRun& run, const char* mangled, const StreamOfLaunch& on) noexcept;
  SampledRecords records() const noexcept { return options_.switches.records; }
  bool names_code() const noexcept { return options_.switches.names_code; }
  gpu::SamplingWindows& windows() noexcept { return windows_; }
  gpu::InstructionSamples& samples() noexcept { return samples_; }
  gpu::CodeObjects& code() noexcept { return code_; }
  InstructionDetails details() const;

 private:
  struct Context;
  struct Records;

  bool ready();
  void open_window();
  void close_window();
  bool is_at_launches() const noexcept { return options_.switches.place != SamplingPlace::kWindow; }
  void meet(void* context, void* stream, bool begins) noexcept;
  bool is_over(const Context& context) const noexcept;
  bool is_capturing(void* stream) const noexcept;
  bool device_is_idle(Context& context);
  template <class Calls>
  bool ask(const Calls& calls);
  bool start(Context& context);
  void finish(Context& context);
  void know_launch(const Context& context);
  void roll(Context& context);
  void forget_if_all_had_it() noexcept;
  bool configure(Context& context, std::string* why);
  void learn_reasons(Context& context);
  void drain(Context& context) noexcept;
  void take(Context& context, const Records& records, const cupti::SamplingData& data) noexcept;
  void refuse(const std::string& sentence);
  void give_up(void* context, const std::string& why);
  std::string refusal(cupti::Result result, const char* doing) const;
  std::vector<std::shared_ptr<Context>> contexts() const;
  std::shared_ptr<Context> take_out(void* context);

  const CuptiLibrary& library_;
  const std::uint32_t version_;
  const PcSamplingOptions options_;
  const Driver driver_;
  const PcSamplingFunctions& call_;
  gpu::CodeObjects code_;
  gpu::InstructionSamples samples_;

  mutable std::mutex list_mutex_;  // never held while CUPTI is called
  std::vector<std::shared_ptr<Context>> contexts_;
  std::vector<void*> refused_;  // contexts that are not asked for again
  std::string message_;

  std::atomic<std::uint32_t> launches_{0};  // until there were enough of them
  std::atomic<bool> wanted_{false};         // a window is on
  std::atomic<std::uint64_t> window_{0};    // its number
  std::atomic<std::uint32_t> open_{0};      // contexts that are sampled now
  std::atomic<std::int32_t> captures_{0};
  std::atomic<std::int64_t> asking_since_ns_{0};            // a thread of the program is in a call of ours; 0: none is
  std::atomic<bool> given_up_{false};                       // CUPTI does not answer
  std::atomic<bool> never_idle_{false};                     // the device, whenever samples were wanted
  std::atomic<std::uint32_t> not_idle_{0};                  // times in a row, of the context that launches
  const std::chrono::milliseconds limit_ = answer_limit();  // of CUPTI's answers
  gpu::BoundedCalls calls_;

  std::atomic<std::uint64_t> dropped_{0};
  std::atomic<std::uint64_t> buffer_full_{0};
  std::atomic<std::uint64_t> other_samples_{0};
  gpu::SamplingWindows windows_;
};

// "long_scoreboard" for smsp__pcsamp_warps_issue_stalled_long_scoreboard; *not_issued for the counter of those samples
// in which nothing else was issued either.
std::string stall_name(std::string_view vendors, bool* not_issued);

// "k" for "$k$f", as compilers name a function that only the kernel k calls; empty for any other name.
std::string kernel_of(std::string_view function);

}  // namespace leadline::nvidia
