// What a run of an executable makes, and when it has ended on its devices.
//
// Executables are asked once for the number of their results and the bytes of these, which are the same in each run.
// Ends are told by events: those that the caller asked for, else that of the first result. Runs in flight wait in a
// pool of fixed size; one for which there is no room is counted and not waited for.
#pragma once

#include <cstdint>

#include "leadline/monitor.h"
#include "providers/pjrt/calls.h"
#include "providers/pjrt/pjrt_abi.h"

namespace leadline::pjrt {

// Asks the plug-in something of our own; an error is taken away again.
bool ask(std::size_t table, Slot slot, Arguments* arguments) noexcept;
// Numbers of devices; -1 where the plug-in does not tell.
std::int32_t number_of(std::size_t table, void* device) noexcept;
std::int32_t device_of_buffer(std::size_t table, void* buffer) noexcept;
std::int64_t size_of_buffer(std::size_t table, void* buffer) noexcept;

// After a run was handed over without an error: the bytes of its results on all devices, and its ends will be booked at
// `place`.
std::int64_t ran(std::size_t table, const Execute& run, leadline_context place, std::int64_t begun_ns,
                 Measuring& measuring) noexcept;
// Before an executable is destroyed: another one may get its address.
void forget_executable(const void* executable) noexcept;
// When following begins: what was destroyed before nobody has told.
void forget_all_executables() noexcept;

}  // namespace leadline::pjrt
