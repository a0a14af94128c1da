// The NVIDIA provider: start, pause, resume, flush, stop. The only header of this folder, with nvtx.h, that others
// include.
//
// Nothing here loads or starts CUDA: start() fails with one sentence where the program has not, and await_cuda() waits
// until it does. The program's behaviour stays as it is in every case; what cannot be measured is said in
// Status::message and counted as a loss.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "leadline/monitor.h"
#include "providers/gpu_provider.h"

namespace leadline::nvidia {

struct Options : gpu::Options {               // instructions: "continuous" or "serialised"
  std::vector<std::string> cupti_candidates;  // where to find CUPTI if the program has no copy loaded, best first
  bool shared = true;                         // share CUPTI with other tools where it can be shared
  bool whole_graphs = false;  // one record per replayed graph instead of one per kernel: cheaper, coarser
  bool traces = true;  // what only a timeline shows: calls on events, records of waits and of CUPTI's own work. Without
                       // them waits are timed by their calls; records of waits cost 3 to 9 µs a launch on an H100
  bool time_regions = true;                   // without CUPTI: time regions with CUDA events
  std::int64_t sample_period = 0;             // a sample every 2^period cycles; 0: what CUPTI chooses
  std::int64_t counter_interval_ns = 50'000;  // between two readings of hardware counters
  bool replay = false;                        // count them kernel by kernel, each run as often as it takes
  std::int64_t replay_launches = 32;          // in one stretch
};

struct Status {
  bool measuring = false;       // kernels, copies and waits are measured
  bool timing_regions = false;  // fallback: GPU time of regions only
  std::string message;          // one sentence: what, why, what to do; empty when all is well
  std::string holder;           // the tool that holds CUPTI, where CUPTI told
  bool awaiting = false;        // nothing yet, because the program has not started CUDA
};

struct InstructionDetails : gpu::InstructionDetails {
  std::uint64_t buffer_full = 0;
};

struct CounterDetails : gpu::CounterDetails {
  std::uint64_t overflows = 0;
  std::uint64_t rounds = 0;         // of decoding
  std::uint64_t failed_rounds = 0;  // that CUPTI could not decode
  std::int32_t stopped = -1;        // why the last one ended: 0 other, 1 image full, 2 end of what there was
  bool aligned = false;             // CUPTI's times of readings are of another clock; they were laid into their window
};

struct ReplayDetails {
  std::string message;  // why nothing, or less, is counted; empty when all is well
  std::string chips;
  std::vector<std::string> metrics;
  gpu::WindowCounters windows;
  std::uint64_t stretches = 0;  // of launches that were replayed
  std::uint64_t launches = 0;   // whose counters are known
  std::size_t passes = 0;       // that each kernel was run
};

struct Details : gpu::Details {
  std::string cupti_path;
  std::string cupti_version;  // "13.0"
  std::string driver_cuda;    // "13.0"
  std::string subscription;   // "single", "shared", "none"
  std::int64_t vendor_overhead_ns = 0;
  bool cupti_finalized = false;
  bool device_lost = false;
  std::optional<InstructionDetails> instructions;
  std::optional<CounterDetails> counters;
  std::optional<ReplayDetails> replay;
};

struct Report {
  Status status;
  std::string yielded_to;           // the tool that CUPTI was given to
  std::vector<std::string> copies;  // of CUPTI in this process
  std::optional<Details> details;   // nullopt: nothing has been measured
};

// One per process. All functions may be called from any thread, none from a CUDA callback; none throws.
Status start(const Options& options);
// As start() where the program has started CUDA; else measures from that moment on, which the driver tells through
// leadline_cuda_initialize() (below).
Status await_cuda(const Options& options);
// Puts what has finished on the devices into the tree; waits at most `timeout_s`. True when nothing finished is
// missing.
bool flush(double timeout_s);
// The program asked for a rest. Work launched before keeps its time, whenever it is known; work launched in between
// belongs nowhere and is no loss. Both may come twice, and before start() and after stop().
void pause();
void resume();
// Lets go of CUPTI so that another tool may have it, and takes it again; take_back() may be called until it succeeds.
// `tool` is named in the loss that is counted.
void yield_to(const std::string& tool);
Status take_back();
Status stop();
bool is_measuring();
// Opens or closes a window of samples, where no thread of the provider does (Options::sample_window_s is 0).
void sample_window(bool open);

// For meta.json (`available.nvidia`) and the doctor: versions, copies, mode, holder, uncertainty of the clock relation,
// counters, own cost.
Report report();

// The session's face of all this. start() takes the members of Options by their names, and `await`: as await_cuda().
// status() adds the members of Status to `ok` and `message`.
leadline::Provider& session_provider();

// In the child of a fork: CUDA and CUPTI do not survive it; forgets everything without calling them. Runs by itself at
// every fork, and then leave_monitor() when the monitor works again.
void after_fork() noexcept;
void leave_monitor() noexcept;

}  // namespace leadline::nvidia

// What libleadline_inject.so calls when the driver has loaded it (CUDA_INJECTION64_PATH), inside the program's first
// cuInit(): before any context, so that nothing of the program is missed. Always 1, as the driver expects.
extern "C" LEADLINE_EXPORT int leadline_cuda_initialize();
