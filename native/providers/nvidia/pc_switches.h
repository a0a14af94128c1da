// How instructions are sampled, as far as it may be changed to find out what a driver bears: read from the environment
// when measuring starts (docs/providers/nvidia.md). Diagnostics, no part of the interface.
#pragma once

#include <cstdint>
#include <string>

namespace leadline::nvidia {

// Where CUPTI's calls for samples are made.
enum class SamplingPlace : std::uint8_t {
  kLaunch,   // by the thread that launches, where the driver begins and ends a launch
  kHelper,   // there too, by a thread of ours for which the launching one waits, but not without end
  kCreated,  // from the creation of a context on, taken at launches
  kWindow,   // by the thread of windows, whatever the program does
};

// Who waits until the device has done what was launched, before sampling starts and stops.
enum class SamplingWait : std::uint8_t { kHelper, kLaunch, kNobody };

// Records that are kept beside. Where CUPTI keeps records of kernels it takes every sample for one of a kernel that is
// not the program's (13.0 on an H100: all of 2.3 million, also with records off while samples were taken).
enum class SampledRecords : std::uint8_t { kKernels, kAll, kNone };

struct PcSwitches {
  SamplingPlace place = SamplingPlace::kLaunch;
  SamplingWait wait = SamplingWait::kHelper;
  SampledRecords records = SampledRecords::kNone;
  bool names_code = true;                  // CUPTI asks for a name of code that is loaded
  std::uint32_t after = 100;               // launches before the first window: the first ones load their code
  std::uint32_t at_once = 1;               // launches in a window; 0: as many as there are in its time
  std::size_t hardware_bytes = 64u << 20;  // of the device's memory, for each context; 0: what CUPTI takes (512 MiB)
  std::size_t scratch_bytes = 4u << 20;
  std::string mode;  // empty: as asked for
};

PcSwitches pc_switches();

}  // namespace leadline::nvidia
