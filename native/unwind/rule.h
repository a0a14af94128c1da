// How to get from a frame to its caller, for one address of code: where the frame ends and where the caller's frame
// pointer is. Computed once per address from its unwind information (eh_frame.h), eight bytes.
//
// x86-64. The return address lies just below the end of the frame (the canonical frame address, CFA), as compilers and
// assemblers make it; what keeps it elsewhere has no rule.
#pragma once

#include <cstdint>

namespace leadline::unwind {

enum class RuleKind : uint8_t {
  kNone,       // no unwind information, or of a kind that is not understood
  kFromSp,     // CFA = stack pointer + offset
  kFromBp,     // CFA = frame pointer + offset
  kAtBp,       // CFA = word at frame pointer + offset (functions that align their stack anew)
  kSignal,     // a signal handler returns here: all registers lie in the frame
  kOutermost,  // nobody called it
};

enum class BpMode : uint8_t {
  kSame,   // the caller's frame pointer is still in its register
  kAtCfa,  // it lies at CFA + bp_offset
  kAtBp,   // it lies at frame pointer + bp_offset
};

struct Rule {
  RuleKind kind = RuleKind::kNone;
  BpMode bp = BpMode::kSame;
  int16_t bp_offset = 0;  // bytes; 0 is an offset like any other
  int32_t cfa_offset = 0;
  friend bool operator==(const Rule&, const Rule&) = default;
};
static_assert(sizeof(Rule) == 8);

}  // namespace leadline::unwind
