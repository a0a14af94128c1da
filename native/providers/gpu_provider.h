// What providers of GPUs are asked and what they say of themselves, whoever made the device; each adds what only its
// vendor has.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/device_table.h"
#include "gpu/counter_samples.h"
#include "gpu/instruction_samples.h"
#include "gpu/sampling_windows.h"
#include "providers/provider.h"

namespace leadline::gpu {

struct Options {
  double flush_interval_s = 1;           // how long finished work may wait for its place in the tree
  double wait_at_stop_s = 0.4;           // how long stop() waits for work in flight
  std::string instructions;              // sample instructions, in a way that the vendor has a word for; empty: do not
  std::vector<std::string> gpu_metrics;  // hardware counters to read; empty: none
  double instruction_budget = 0.02;      // share of the time that either may cost
  double sample_window_s = 0.02;
  std::string code_folder;  // where code of the device is kept for reading its lines; empty: nowhere
  std::int64_t code_bytes = 256 << 20;
  std::string recording;  // file to record the stream of calls and records into; empty: none
  std::function<void(DeviceDescription)> describe_device;  // called for every device at start and at stop

  void take(const ProviderOptions& given) {
    flush_interval_s = given.get("flush_interval_s", flush_interval_s);
    wait_at_stop_s = given.get("wait_at_stop_s", wait_at_stop_s);
    instructions = given.get("instructions", instructions);
    gpu_metrics = given.get("gpu_metrics", gpu_metrics);
    instruction_budget = given.get("instruction_budget", instruction_budget);
    sample_window_s = given.get("sample_window_s", sample_window_s);
    code_folder = given.get("code_folder", code_folder);
    code_bytes = given.get("code_bytes", code_bytes);
    recording = given.get("recording", recording);
    describe_device = given.describe_device;
  }
};

struct InstructionDetails {
  std::string mode;
  std::string message;  // why nothing, or less, is sampled; empty when all is well
  WindowCounters windows;
  SampleCounters samples;
  std::uint64_t dropped = 0;
  std::uint64_t other_samples = 0;  // of code that is not the program's, or not known
  std::uint64_t code_bytes = 0;
};

struct CounterDetails {
  std::string message;  // why nothing, or less, is counted; empty when all is well
  std::string chips;    // of the devices, as the vendor's library names them
  std::vector<std::string> metrics;
  WindowCounters windows;
  CounterCounters samples;
};

// Of a measuring that runs, or has run.
struct Details {
  std::int64_t clock_uncertainty_ns = 0;
  std::uint64_t calls_followed = 0;
  std::uint64_t calls = 0;
  std::uint64_t records = 0;
  std::uint64_t unattributed = 0;
  std::uint64_t dropped = 0;
  std::uint64_t outstanding = 0;
  std::uint64_t graph_nodes = 0;
  std::uint64_t graph_nodes_unknown = 0;
  std::int64_t fold_ns = 0;
  std::uint64_t held_bytes = 0;
};

}  // namespace leadline::gpu
