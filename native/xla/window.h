// What the programs of one window of measuring did: sums by program and operation, and the runs that were seen.
//
// On CPUs XLA's own threads tell what they executed. Devices have planes of their own: GPUs a line for each stream,
// TPUs one of operations and one of the programs that these were of (`/device:GPU:0`, `Stream #7(Compute)`, `XLA Ops`,
// `XLA Modules`: tsl/profiler/utils/xplane_schema.cc).
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "xla/space.h"

namespace leadline::xla {

// The statistics that sums of a window need of a Space.
Wanted window_wanted();

// Operations that run others, by program: what those took on any thread is taken off their own time.
using ControlFlow = std::unordered_map<int64_t, std::unordered_set<std::string_view>>;

// What one run of a program on one device of the host consists of, as far as it is known: names of operations that run
// once each time, how many of those runs were seen to have, and on how many devices.
struct Expected {
  std::unordered_set<std::string_view> once;
  uint64_t operations = 0;
  uint64_t devices = 0;
};
using WholeRuns = std::unordered_map<int64_t, Expected>;

struct OperationSum {
  int64_t program = 0;
  uint32_t operation = kNoText;  // in Space::strings()
  int64_t device = kUnknown;     // kUnknown: on threads of the host; the following two are of devices
  int64_t stream = kUnknown;
  uint32_t work = kNoText;  // the kernel or copy
  uint64_t count = 0;
  int64_t total_ps = 0;
  int64_t self_ps = 0;  // less what ran inside
  int64_t min_ps = 0;   // of one whole run of it
  int64_t max_ps = 0;
  double sum_squares = 0;  // of whole runs, ps^2
};

// One execution of a program on one device.
struct ProgramRun {
  int64_t program = 0;
  int64_t run = kUnknown;  // kUnknown: this version does not number them, and all are one
  int64_t device = kUnknown;
  bool on_device = false;
  uint32_t module = kNoText;  // the program's name
  int64_t start_ps = 0;
  int64_t end_ps = 0;
  uint64_t operations = 0;
  uint64_t once = 0;  // distinct ones of Expected::once
  bool whole = true;  // false: an edge of the window has cut the run, on some device, and the sums leave it out
};

struct Window {
  std::vector<OperationSum> operations;
  std::vector<ProgramRun> runs;  // in the order of their numbers
};

// `space` must have been read with window_wanted().
Window sums(const Space& space, const ControlFlow& control, const WholeRuns& expected = {});

}  // namespace leadline::xla
