// One function for every (table, slot) that is followed: begin, the plug-in's own, end.
//
// Runs inside the program's calls: nothing here throws, locks or allocates, and what the plug-in answers is handed on
// as it is.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "providers/pjrt/pjrt_abi.h"

namespace leadline::pjrt {

// What our function for this slot is; null where the slot is not followed.
Function call_of(std::size_t table, std::size_t slot) noexcept;

// What calls work on while measuring.
struct Measuring {
  std::atomic<bool> told{true};          // false: paused
  std::atomic<bool> counts_bytes{true};  // false: a vendor's provider counts what is copied
  std::atomic<std::uint64_t> calls{0};
  std::atomic<std::uint64_t> failed{0};
  std::atomic<std::uint64_t> compiled{0};
  std::atomic<std::uint64_t> executed{0};
  std::atomic<std::uint64_t> copied_bytes{0};
  std::atomic<std::uint64_t> buffers_freed{0};
  std::atomic<std::uint64_t> made_bytes{0};                 // of buffers that runs resulted in
  std::atomic<std::uint64_t> ended{0};                      // runs, on each of their devices
  std::atomic<std::uint64_t> ended_failed{0};               // those that ended in an error
  std::atomic<std::uint64_t> not_awaited{0};                // those for which there was no room or no event
  std::atomic<std::uint64_t> session{0};                    // ends of an earlier one are none of this
  std::atomic<std::uint64_t> frame{0};                      // of what stands for a run on its device
  std::array<std::atomic<std::int64_t>, 64> last_end_ns{};  // of each device
};

}  // namespace leadline::pjrt
