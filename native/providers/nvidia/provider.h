// The NVIDIA provider: start, pause, resume, flush, stop. The only header of this folder, with nvtx.h, that others
// include.
//
// Nothing here loads or starts CUDA: start() fails with one sentence where the program has not, and await_cuda() waits
// until it does. The program's behaviour stays as it is in every case; what cannot be measured is said in
// Status::message and counted as a loss.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/device_table.h"
#include "leadline/monitor.h"
#include "providers/provider.h"

namespace leadline::nvidia {

struct Options {
  std::vector<std::string> cupti_candidates;  // where to find CUPTI if the program has no copy loaded, best first
  bool shared = true;                         // share CUPTI with other tools where it can be shared
  bool whole_graphs = false;         // one record per replayed graph instead of one per kernel: cheaper, coarser
  double flush_interval_s = 0.25;    // how long finished work may wait for its place in the tree
  double wait_at_stop_s = 0.4;       // how long stop() waits for work in flight
  bool time_regions = true;          // without CUPTI: time regions with CUDA events
  std::string instructions;          // "continuous" or "serialised": sample instructions so; empty: do not
  double instruction_budget = 0.02;  // share of the time that sampling may cost
  double sample_window_s = 0.02;     // 0: sample_window() says when
  std::int64_t sample_period = 0;    // a sample every 2^period cycles; 0: what CUPTI chooses
  std::string code_folder;           // where code of the device is kept for reading its lines; empty: nowhere
  std::int64_t code_bytes = 256 << 20;
  std::vector<std::string> gpu_metrics;       // hardware counters to read, see counter_choice.h; empty: none
  std::int64_t counter_interval_ns = 50'000;  // between two readings of them
  bool replay = false;                        // count them kernel by kernel, each run as often as it takes
  std::string recording;                      // file to record the stream of calls and records into; empty: none
  std::function<void(DeviceDescription)> describe_device;  // called for every device at start and at stop
};

struct Status {
  bool measuring = false;       // kernels, copies and waits are measured
  bool timing_regions = false;  // fallback: GPU time of regions only
  std::string message;          // one sentence: what, why, what to do; empty when all is well
  std::string holder;           // the tool that holds CUPTI, where CUPTI told
  bool awaiting = false;        // nothing yet, because the program has not started CUDA
};

struct InstructionDetails {
  std::string mode;     // "continuous", "serialised"
  std::string message;  // why nothing is sampled; empty when all is well
  std::uint64_t windows = 0;
  std::int64_t open_ns = 0;   // of all windows together
  std::int64_t spent_ns = 0;  // what they have cost: calls, and kernels that took longer inside
  std::uint64_t samples = 0;
  std::uint64_t by_launch = 0;  // attributed by the launch that CUPTI named
  std::uint64_t by_window = 0;  // attributed to the kernels of that name that ran then, by their time
  std::uint64_t unattributed = 0;
  std::uint64_t dropped = 0;
  std::uint64_t buffer_full = 0;
  std::uint64_t other_samples = 0;  // of kernels that are not the program's
  std::uint64_t code_bytes = 0;
};

struct CounterDetails {
  std::vector<std::string> metrics;
  std::string chips;
  std::string message;  // why nothing, or less, is counted; empty when all is well
  std::uint64_t windows = 0;
  std::int64_t open_ns = 0;
  std::int64_t spent_ns = 0;
  std::uint64_t readings = 0;
  std::uint64_t idle = 0;  // of those, while no kernel was seen to run
  std::uint64_t overflows = 0;
  bool aligned = false;  // the times of readings were laid into their window, since they are of another clock
};

struct ReplayDetails {
  std::vector<std::string> metrics;
  std::string chips;
  std::string message;  // why nothing, or less, is counted; empty when all is well
  std::uint64_t windows = 0;
  std::int64_t spent_ns = 0;
  std::uint64_t stretches = 0;  // of launches that were replayed
  std::uint64_t launches = 0;
  std::uint64_t passes = 0;  // that each kernel was run
};

// Of a measuring that runs, or has run.
struct Details {
  std::string cupti_path;
  std::string cupti_version;  // "13.0"
  std::string driver_cuda;    // "13.0"
  std::string subscription;   // "single", "shared", "none"
  std::int64_t clock_uncertainty_ns = 0;
  std::uint64_t calls_followed = 0;
  std::uint64_t calls = 0;
  std::uint64_t records = 0;
  std::uint64_t unattributed = 0;
  std::uint64_t dropped = 0;
  std::uint64_t outstanding = 0;
  std::uint64_t graph_nodes = 0;
  std::uint64_t graph_nodes_unknown = 0;
  std::int64_t vendor_overhead_ns = 0;
  std::int64_t fold_ns = 0;
  std::uint64_t held_bytes = 0;
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

// The session's face of all this. start() takes `cupti_candidates` (list), `shared`, `whole_graphs`,
// `flush_interval_s`, `recording`, and `await`: as await_cuda(). status() adds the members of Status to `ok` and
// `message`.
leadline::Provider& session_provider();

// In the child of a fork: CUDA and CUPTI do not survive it; forgets everything without calling them. Runs by itself at
// every fork, and then leave_monitor() when the monitor works again.
void after_fork() noexcept;
void leave_monitor() noexcept;

}  // namespace leadline::nvidia

// What libleadline_inject.so calls when the driver has loaded it (CUDA_INJECTION64_PATH), inside the program's first
// cuInit(): before any context, so that nothing of the program is missed. Always 1, as the driver expects.
extern "C" LEADLINE_EXPORT int leadline_cuda_initialize();
