// The way out of a function that has no unwind information, read from its code: its instructions are followed from an
// address to where it returns, as far as they move the stack. Every function gives back what it took, so what is
// followed need not be what will run. For helper threads.
#pragma once

#include <cstdint>
#include <vector>

#include "unwind/call_before.h"

namespace leadline::unwind {

// An address or a register's value, as what the stack and frame pointer hold at the address asked for says.
struct Expression {
  enum Kind : uint8_t { kUnknown, kSp, kBp, kAtSp, kAtBp };
  Kind kind = kUnknown;
  int64_t inner = 0;  // kAtSp, kAtBp: of the word at the pointer and this many bytes
  int64_t add = 0;
  friend bool operator==(const Expression&, const Expression&) = default;
};

struct WayOut {
  Expression return_at;  // where the return address is
  Expression bp;         // the caller's frame pointer
  friend bool operator==(const WayOut&, const WayOut&) = default;
};

// From `pc`, the next instruction to run, in a function that ends at `end` (0: nobody knows where). Those that differ,
// as different returns say; more than one: something was followed that never happens (a call that does not return).
// Empty: no return was found.
std::vector<WayOut> ways_out(uintptr_t pc, uintptr_t end);

// Whether a function may end by jumping to `to` instead of calling it, also by way of others, or through a register:
// what it leaves behind is then its own caller.
bool jumps_on(uintptr_t function, uintptr_t to);

}  // namespace leadline::unwind
