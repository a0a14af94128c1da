// The AMD provider: start, pause, resume, flush, stop. The only header of this folder that others include.
//
// Nothing here starts HIP. The SDK takes tools only while HIP starts: where the program was started with `leadline run`
// it asks for Leadline then (tool.h), elsewhere start() asks it to. The program's behaviour stays as it is in every
// case; what cannot be measured is said in Status::message and counted as a loss.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "leadline/monitor.h"
#include "providers/gpu_provider.h"

namespace leadline::amd {

struct Options : gpu::Options {         // instructions: any word
  std::vector<std::string> candidates;  // where to find the SDK if the program has no copy loaded, best first
  std::vector<std::string> older;       // the same of roctracer, where there is no SDK
  bool await = false;                   // do not ask the SDK: it asks when the program starts HIP
  double patience_s = 60;               // after so long with launches and no record it is said that there are none
};

struct Status {
  bool measuring = false;
  bool awaiting = false;  // nothing yet, because the program has not started HIP
  std::string message;    // one sentence: what, why, what to do; empty when all is well
};

using InstructionDetails = gpu::InstructionDetails;  // mode: "stochastic", "host-trap"

struct CounterDetails : gpu::CounterDetails {  // a reading is a dispatch, idle where its kernel is not known
  std::uint64_t dropped = 0;                   // dispatches
};

struct Details : gpu::Details {
  std::string source;  // "rocprofiler-sdk", "roctracer"
  std::string sdk_path;
  std::string sdk_version;  // "1.0.0"
  bool late = false;        // HIP was there before the tool
  std::uint64_t launches = 0;
  std::uint64_t requests = 0;
  std::uint64_t kernels = 0;
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
