// Rules from the unwind information that compilers leave in `.eh_frame` (System V ABI for x86-64, Linux Standard Base
// 10.6, DWARF 5 section 6.4).
//
// No allocation, no lock: for signal handlers. Reads only memory of loaded modules; information that makes no sense is
// no rule, never a read outside of the section's own lengths.
#pragma once

#include <cstddef>
#include <cstdint>

#include "unwind/rule.h"

namespace leadline::unwind {

// Where a module keeps its unwind information.
struct Sections {
  uintptr_t begin = 0;  // addresses that are mapped for it
  uintptr_t end = 0;
  uintptr_t eh_frame_hdr = 0;  // 0: it has none
};

// Of the module that an address of code lies in; false where none does. Signal-safe from glibc 2.35 on, elsewhere
// always false.
bool find_sections(uintptr_t pc, Sections* out) noexcept;

// For an address inside a function (of a caller: the address of its call, one less than where it returns to).
Rule find_rule(uintptr_t pc, const Sections& sections) noexcept;

// One function's information, for tests: `cie` and `fde` as they stand in the section, lengths included.
Rule run_program(uintptr_t pc, uintptr_t fde, uintptr_t lowest, uintptr_t highest) noexcept;

}  // namespace leadline::unwind
