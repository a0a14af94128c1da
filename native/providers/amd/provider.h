// The AMD provider: start, pause, resume, flush, stop. The only header of this folder that others include.
//
// Nothing here starts HIP. The SDK takes tools only while HIP starts: where the program was started with `leadline run`
// it asks for Leadline then (tool.h), elsewhere start() asks it to. The program's behaviour stays as it is in every
// case; what cannot be measured is said in Status::message and counted as a loss.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/device_table.h"
#include "leadline/monitor.h"
#include "providers/provider.h"

namespace leadline::amd {

struct Options {
  std::vector<std::string> candidates;   // where to find the SDK if the program has no copy loaded, best first
  std::vector<std::string> older;        // the same of roctracer, where there is no SDK
  bool await = false;                    // do not ask the SDK: it asks when the program starts HIP
  double flush_interval_s = 0.25;        // how long finished work may wait for its place in the tree
  double wait_at_stop_s = 0.4;           // how long stop() waits for work in flight
  double patience_s = 60;                // after so long with launches and no record it is said that there are none
  std::string instructions;              // not empty: sample instructions, each with its launch
  std::vector<std::string> gpu_metrics;  // count these, dispatch by dispatch
  double instruction_budget = 0.02;      // share of the time that either may cost
  double sample_window_s = 0.02;
  std::string code_folder;  // where code of the device is kept for reading its lines; empty: nowhere
  std::int64_t code_bytes = 256 << 20;
  std::string recording;  // file to record the stream of calls and records into; empty: none
  std::function<void(DeviceDescription)> describe_device;  // called for every device at start and at stop
};

struct Status {
  bool measuring = false;
  bool awaiting = false;  // nothing yet, because the program has not started HIP
  std::string message;    // one sentence: what, why, what to do; empty when all is well
};

struct InstructionDetails {
  std::string mode;     // "stochastic", "host-trap"
  std::string message;  // why nothing is sampled; empty when all is well
  std::uint64_t windows = 0;
  std::int64_t open_ns = 0;   // of all windows together
  std::int64_t spent_ns = 0;  // what they have cost: calls, and kernels that took longer inside
  std::uint64_t samples = 0;
  std::uint64_t by_launch = 0;
  std::uint64_t unattributed = 0;
  std::uint64_t dropped = 0;
  std::uint64_t other_samples = 0;  // of code that is not the program's, or not known
  std::uint64_t code_bytes = 0;
};

struct CounterDetails {
  std::vector<std::string> metrics;
  std::string chips;
  std::string message;  // why nothing, or less, is counted; empty when all is well
  std::uint64_t windows = 0;
  std::int64_t open_ns = 0;
  std::int64_t spent_ns = 0;
  std::uint64_t readings = 0;  // dispatches
  std::uint64_t idle = 0;      // of those, whose kernel is not known
  std::uint64_t dropped = 0;
};

// Of a measuring that runs, or has run.
struct Details {
  std::string source;  // "rocprofiler-sdk", "roctracer"
  std::string sdk_path;
  std::string sdk_version;  // "1.0.0"
  bool late = false;        // HIP was there before the tool
  std::int64_t clock_uncertainty_ns = 0;
  std::uint64_t calls_followed = 0;
  std::uint64_t calls = 0;
  std::uint64_t launches = 0;
  std::uint64_t requests = 0;
  std::uint64_t records = 0;
  std::uint64_t unattributed = 0;
  std::uint64_t dropped = 0;
  std::uint64_t outstanding = 0;
  std::uint64_t kernels = 0;
  std::uint64_t graph_nodes = 0;
  std::uint64_t graph_nodes_unknown = 0;
  std::int64_t fold_ns = 0;
  std::uint64_t held_bytes = 0;
  std::optional<InstructionDetails> instructions;
  std::optional<CounterDetails> counters;
};

struct Report {
  Status status;
  std::vector<std::string> copies;  // of the SDK in this process
  std::optional<Details> details;   // nullopt: nothing has been measured
};

// One per process. All functions may be called from any thread, none from a callback of the SDK; none throws.
Status start(const Options& options);
bool flush(double timeout_s);
void pause();
void resume();
Status stop();
Report report();

// The session's face of all this. start() takes the members of Options by their names. status() adds the members of
// Status to `ok` and `message`.
leadline::Provider& session_provider();

// Another tool takes roctracer, which serves one at a time; and has let go of it again.
void yield_to(const std::string& tool);
Status take_back();

// HSA has started, and with it HIP, in a process that has no SDK to ask for tools: called by HSA itself.
void hsa_started() noexcept;

// In the child of a fork: HIP does not survive it; forgets everything without calling it. Runs by itself at every fork,
// and then leave_monitor() when the monitor works again.
void after_fork() noexcept;
void leave_monitor() noexcept;

}  // namespace leadline::amd

// See tool.cpp.
extern "C" LEADLINE_EXPORT void* leadline_rocprofiler_configure(std::uint32_t version, const char* description,
                                                                std::uint32_t priority, void* client);
