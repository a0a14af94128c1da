// One function for every (table, slot) that is followed: begin, the plug-in's own, end.
//
// Runs inside the program's calls: nothing here throws, locks or allocates, and what the plug-in answers is handed on
// as it is.
#pragma once

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
};

}  // namespace leadline::pjrt
