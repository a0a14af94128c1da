// Samples of the program counter by CUPTI, in windows that cost no more than was asked for.
//
// A thread of its own opens and closes windows and takes the samples; the program's threads are only met where its
// contexts begin and end and where code is unloaded. What is taken goes to gpu::InstructionSamples, which knows the
// kernels. Nothing here throws past its border, and what CUPTI refuses is one sentence, after which the rest of the
// provider goes on as without.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "gpu/code_objects.h"
#include "gpu/instruction_samples.h"
#include "gpu/sampling_windows.h"
#include "providers/nvidia/cupti_library.h"
#include "providers/nvidia/pc_sampling_abi.h"
#include "providers/nvidia/provider.h"

namespace leadline::nvidia {

struct PcSamplingOptions {
  cupti::SamplingMode mode = cupti::SamplingMode::kContinuous;
  double budget = 0.02;      // share of the time
  double window_s = 0.02;    // 0: windows are opened and closed by who asks, as tests do
  std::uint32_t period = 0;  // a sample every 2^period cycles, 5 to 31; 0: what CUPTI chooses
  std::string code_folder;   // where code is kept; empty: nowhere
  std::uint64_t code_bytes = 256u << 20;
};

PcSamplingOptions sampling_options(const Options& options);

class PcSampler {
 public:
  PcSampler(const CuptiLibrary& library, PcSamplingOptions options);
  ~PcSampler();
  PcSampler(const PcSampler&) = delete;
  PcSampler& operator=(const PcSampler&) = delete;

  // False where this CUPTI cannot sample, said in details().
  bool begin();
  // No window is opened any more, the last one is taken, CUPTI's sampling is off.
  void stop();

  // In callbacks of CUPTI, on the program's threads.
  void context_created(void* context, std::int32_t device) noexcept;
  void context_destroyed(void* context) noexcept;
  void code_unloading(void* context) noexcept;

  gpu::SamplingWindows& windows() noexcept { return windows_; }
  gpu::InstructionSamples& samples() noexcept { return samples_; }
  gpu::CodeObjects& code() noexcept { return code_; }
  InstructionDetails details() const;

 private:
  struct Context;
  struct Records;

  bool ready() const;
  void open_window();
  void close_window();
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
  const PcSamplingFunctions& call_;
  gpu::CodeObjects code_;
  gpu::InstructionSamples samples_;

  mutable std::mutex list_mutex_;  // never held while CUPTI is called
  std::vector<std::shared_ptr<Context>> contexts_;
  std::vector<void*> refused_;  // contexts that are not asked for again
  std::string message_;

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
