// NVTX's ranges as regions of the monitor: push and pop, start and end, also by another thread.
//
// Runs inside the program's NVTX calls: nothing here throws or waits, and a range allocates nothing, but for the first
// of a thread and one deeper than any before it.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "providers/nvidia/nvtx_abi.h"
#include "providers/nvidia/nvtx_names.h"

namespace leadline::nvidia {

// While false, ranges are matched and counted but not shown.
extern std::atomic<bool> nvtx_active;

// Whether XLA names a program by its number, or one of its operations. Programs without a number are those that it
// tries out while it compiles.
bool is_title(std::string_view name) noexcept;

// The results are NVTX's: the level of a range in its domain, from 0, or -1; an id for range_end, 0 for none.
int range_push(NvtxDomain& domain, const char* name, const nvtx::EventAttributes* attributes) noexcept;
int range_pop(NvtxDomain& domain) noexcept;
std::uint64_t range_start(NvtxDomain& domain, const char* name, const nvtx::EventAttributes* attributes) noexcept;
void range_end(std::uint64_t id) noexcept;
// In the child of a fork: the other threads are gone.
void ranges_after_fork() noexcept;

}  // namespace leadline::nvidia
