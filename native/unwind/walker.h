// One walk from frame to caller, over memory and rules that `Where` has: this thread's own (walk.cpp), or another
// process's as they were read (other_process.cpp). Signal-safe where `Where` is.
//
//   Rule Where::rule(uintptr_t pc) noexcept
//   uintptr_t Where::word(uintptr_t address) noexcept    inside of the stack, checked before
//
// and, where somebody wants to know what the steps rest on: with what rules say of code, these words tell all of them.
// A caller's frame pointer that no step asks for is none; address 0 is the register that the walk began with.
//
//   void Where::rests_on(uintptr_t address, uintptr_t value) noexcept
#pragma once

#include <ucontext.h>

#include <cstddef>
#include <cstdint>

#include "unwind/rule.h"
#include "unwind/walk.h"

namespace leadline::unwind {

template <typename Where>
class Walker {
 public:
  Walker(Registers from, uintptr_t end, Where where = {}) noexcept : at_(from), end_(end), where_(where) {}

  const Registers& at() const noexcept { return at_; }
  // The end of the present frame, 0 where it is not known; *end says why the walk is over, if it is.
  uintptr_t step(bool* over, End* end) noexcept {
    *over = true;
    const Rule rule = where_.rule(exact_ ? at_.pc : at_.pc - 1);
    uintptr_t cfa = 0;
    switch (rule.kind) {
      case RuleKind::kNone:
        *end = End::kGap;
        return 0;
      case RuleKind::kOutermost:
        *end = End::kOutermost;
        return 0;
      case RuleKind::kSignal:
        return leave_signal(over, end);
      case RuleKind::kFromSp:
        cfa = at_.sp + static_cast<uintptr_t>(int64_t{rule.cfa_offset});
        break;
      case RuleKind::kFromBp:
        rest_on(bp_at_, at_.bp);
        cfa = at_.bp + static_cast<uintptr_t>(int64_t{rule.cfa_offset});
        break;
      case RuleKind::kAtBp: {
        rest_on(bp_at_, at_.bp);
        const uintptr_t from = at_.bp + static_cast<uintptr_t>(int64_t{rule.cfa_offset});
        if (!on_stack(from)) return broken(end);
        cfa = where_.word(from);
        rest_on(from, cfa);
        break;
      }
    }
    if (cfa % 8 != 0 || cfa <= at_.sp || cfa > end_ || cfa < 8) return broken(end);
    uintptr_t bp = at_.bp;
    if (rule.bp != BpMode::kSame) {
      if (rule.bp == BpMode::kAtBp) rest_on(bp_at_, at_.bp);
      const uintptr_t base = rule.bp == BpMode::kAtCfa ? cfa : at_.bp;
      const uintptr_t from = base + static_cast<uintptr_t>(int64_t{rule.bp_offset});
      if (!on_stack(from)) return broken(end);
      bp = where_.word(from);
      bp_at_ = from;
    }
    at_ = {where_.word(cfa - 8), cfa, bp};
    rest_on(cfa - 8, at_.pc);
    exact_ = false;
    *over = at_.pc == 0;
    *end = End::kOutermost;
    return cfa;
  }

 private:
  bool on_stack(uintptr_t address) const noexcept {
    return address % 8 == 0 && address >= at_.sp && end_ - address >= 8 && address < end_;
  }
  void rest_on(uintptr_t address, uintptr_t value) noexcept {
    if constexpr (requires { where_.rests_on(address, value); }) where_.rests_on(address, value);
  }
  static uintptr_t broken(End* end) noexcept {
    *end = End::kBroken;
    return 0;
  }
  // The kernel has put all registers on the stack.
  uintptr_t leave_signal(bool* over, End* end) noexcept {
#ifdef __x86_64__
    const uintptr_t context = at_.sp;
    if (!on_stack(context) || end_ - context < sizeof(ucontext_t)) return broken(end);
    const auto place = [context](size_t which) {
      return context + offsetof(ucontext_t, uc_mcontext.gregs) + which * sizeof(greg_t);
    };
    const auto saved = [&](size_t which) {
      const uintptr_t value = where_.word(place(which));
      rest_on(place(which), value);
      return value;
    };
    const Registers interrupted{saved(REG_RIP), saved(REG_RSP), saved(REG_RBP)};
    if (interrupted.sp <= at_.sp || interrupted.sp >= end_) return broken(end);  // it came from another stack
    at_ = interrupted;
    bp_at_ = place(REG_RBP);
    exact_ = true;
    *over = false;
    return at_.sp;
#else
    (void)over;
    return broken(end);
#endif
  }

  Registers at_;
  uintptr_t end_;
  Where where_;
  uintptr_t bp_at_ = 0;  // where the frame pointer was read
  bool exact_ = true;
};

}  // namespace leadline::unwind
