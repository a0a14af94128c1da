// The way out of code without unwind information: assembly of BLAS libraries, code made at run time. For helper
// threads, over a copy of the stack.
//
// The code is followed to where it returns (way_out.h); where that cannot be, the nearest word that can be a return
// address is tried. Both are believed only where they can be checked: what lies at the place of a return address must
// follow a call, a direct call must be of the very function, and from there rules must lead to a frame that is known to
// be there (the anchor). Otherwise there is no way out, and who asks says so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "unwind/walk.h"

namespace leadline::unwind {

struct StackCopy {
  uintptr_t sp = 0;  // where its first byte was
  const unsigned char* bytes = nullptr;
  size_t size = 0;
};

// The function that an address lies in; zeros where that is not known (code made at run time, symbols that are not
// loaded).
struct FunctionRange {
  uintptr_t begin = 0;
  uintptr_t end = 0;
};
using FindFunction = FunctionRange (*)(void* user, uintptr_t pc);

// From `at`, which has no rule, to the frame that holds `anchor`, an address on the stack. Frames from `at` on, leaf
// first; empty: there is no way that could be checked.
// `is_leaf`: it is where the thread runs, and not where a call goes on.
std::vector<NativeFrame> cross_gap(Registers at, bool is_leaf, const StackCopy& stack, uintptr_t anchor,
                                   FindFunction function, void* user);

}  // namespace leadline::unwind
