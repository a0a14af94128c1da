#include "unwind/walk.h"

#include <dlfcn.h>
#include <pthread.h>
#include <ucontext.h>

#include "unwind/rule_cache.h"

namespace leadline::unwind {
namespace {

uintptr_t word_at(uintptr_t address) noexcept { return *reinterpret_cast<const uintptr_t*>(address); }

class Walker {
 public:
  Walker(Registers from, uintptr_t end) noexcept : at_(from), end_(end) {}

  const Registers& at() const noexcept { return at_; }
  // The end of the present frame, 0 where it is not known; *end says why the walk is over, if it is.
  uintptr_t step(bool* over, End* end) noexcept {
    *over = true;
    const Rule rule = rule_at(exact_ ? at_.pc : at_.pc - 1);
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
        cfa = at_.bp + static_cast<uintptr_t>(int64_t{rule.cfa_offset});
        break;
      case RuleKind::kAtBp: {
        const uintptr_t from = at_.bp + static_cast<uintptr_t>(int64_t{rule.cfa_offset});
        if (!on_stack(from)) return broken(end);
        cfa = word_at(from);
        break;
      }
    }
    if (cfa % 8 != 0 || cfa <= at_.sp || cfa > end_ || cfa < 8) return broken(end);
    uintptr_t bp = at_.bp;
    if (rule.bp != BpMode::kSame) {
      const uintptr_t base = rule.bp == BpMode::kAtCfa ? cfa : at_.bp;
      const uintptr_t from = base + static_cast<uintptr_t>(int64_t{rule.bp_offset});
      if (!on_stack(from)) return broken(end);
      bp = word_at(from);
    }
    at_ = {word_at(cfa - 8), cfa, bp};
    exact_ = false;
    *over = at_.pc == 0;
    *end = End::kOutermost;
    return cfa;
  }

 private:
  bool on_stack(uintptr_t address) const noexcept {
    return address % 8 == 0 && address >= at_.sp && end_ - address >= 8 && address < end_;
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
    const greg_t* const registers = reinterpret_cast<const ucontext_t*>(context)->uc_mcontext.gregs;
    const Registers interrupted{static_cast<uintptr_t>(registers[REG_RIP]), static_cast<uintptr_t>(registers[REG_RSP]),
                                static_cast<uintptr_t>(registers[REG_RBP])};
    if (interrupted.sp <= at_.sp || interrupted.sp >= end_) return broken(end);  // it came from another stack
    at_ = interrupted;
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
  bool exact_ = true;
};

}  // namespace

size_t walk(Registers from, uintptr_t stack_end, NativeFrame* out, size_t room, End* end) noexcept {
  Walker walker(from, stack_end);
  size_t count = 0;
  *end = End::kFull;
  if (from.sp >= stack_end || from.sp % 8 != 0) {
    *end = End::kBroken;
    return 0;
  }
  for (bool over = false; !over && count < room; ++count) {
    NativeFrame& frame = out[count];
    frame.pc = walker.at().pc;
    frame.sp = walker.at().sp;
    End why = End::kFull;
    frame.cfa = walker.step(&over, &why);
    if (over) *end = why;
  }
  return count;
}

uintptr_t stack_end(uintptr_t sp, bool main) noexcept {
  constexpr uintptr_t kMost = uintptr_t{1} << 32;  // larger stacks than this are somebody's mistake
  // Glibc puts a thread's own data at the end of its stack; of the first thread the loader knows where it began.
  static const auto* const first = static_cast<const uintptr_t*>(dlsym(RTLD_DEFAULT, "__libc_stack_end"));
  const uintptr_t end = main ? (first == nullptr ? 0 : *first) : static_cast<uintptr_t>(pthread_self());
  return sp < end && end - sp < kMost ? end : 0;
}

}  // namespace leadline::unwind
