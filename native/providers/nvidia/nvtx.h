// Ranges of NVTX, in the program and in its libraries, as regions.
//
// A program's copy of NVTX asks for a tool once, at its first call, by the variable NVTX_INJECTION64_PATH; what it
// finds then stays. The launcher sets the variable before the program starts, unless the user has; nothing is changed
// in a running process. Push/pop (A, W, Ex) and start/end, domains, registered strings, categories and payloads are
// kept; marks are counted.
#pragma once

#include <string>
#include <vector>

#include "leadline/monitor.h"
#include "providers/nvidia/nvtx_abi.h"

namespace leadline::nvidia {

// From now on ranges become regions, but for those in `skipped_domains` (compared without case). A library that asks
// for a domain in `left_alone` finds no tool. Ranges of XLA that name a program or an operation of one become phases,
// also where its domain is skipped: what they stand for is put in their place when a file is written.
void nvtx_start(const std::vector<std::string>& skipped_domains, const std::vector<std::string>& left_alone = {});
void nvtx_stop();

struct NvtxStatus {
  struct Domain {
    std::string name;
    std::uint64_t ranges = 0;
    bool skipped = false;
    std::uint64_t titles = 0;  // of `ranges` those that named a program of XLA's or an operation of one
  };
  std::uint32_t initialised = 0;  // how many libraries found this tool
  std::uint64_t marks = 0;
  std::uint64_t ranges = 0;  // of no domain
  std::vector<Domain> domains;
};
NvtxStatus nvtx_status();

}  // namespace leadline::nvidia

// What libleadline_inject.so calls with NVTX's export table. 1 when the ranges of the calling library will be seen.
extern "C" LEADLINE_EXPORT int leadline_nvtx_initialize(leadline::nvidia::nvtx::GetExportTable get_export_table);
