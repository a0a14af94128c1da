#include "unwind/gap.h"

#include <cstring>
#include <utility>

#include "unwind/call_before.h"
#include "unwind/rule_cache.h"
#include "unwind/walker.h"
#include "unwind/way_out.h"

namespace leadline::unwind {
namespace {

constexpr size_t kMostFrames = 512;
constexpr size_t kMostGaps = 6;          // one below the other
constexpr size_t kMostCandidates = 256;  // return addresses that are looked at for one gap
constexpr size_t kMostScanned = 4096;    // words of the stack
constexpr size_t kSavedRegisters = 8;    // just below a return address
constexpr size_t kNear = 64;             // words beyond a return address where another one makes both doubtful

struct Copied {
  const StackCopy* stack;
  static Rule rule(uintptr_t pc) noexcept { return rule_at(pc); }
  uintptr_t word(uintptr_t address) const noexcept {
    uintptr_t value = 0;
    std::memcpy(&value, stack->bytes + (address - stack->sp), sizeof value);
    return value;
  }
};

class Crossing {
 public:
  Crossing(const StackCopy& stack, uintptr_t anchor, FindFunction function, void* user)
      : stack_(stack), end_(stack.sp + stack.size), anchor_(anchor), function_(function), user_(user) {}

  bool cross(Registers at, bool is_leaf, size_t gaps) {
    if (gaps > kMostGaps || at.sp < stack_.sp || at.sp >= end_ || at.sp % 8 != 0) return false;
    const FunctionRange here = function_(user_, is_leaf ? at.pc : at.pc - 1);
    return follow_code(at, here, gaps) || scan(at, here.begin, gaps);
  }

  std::vector<NativeFrame> frames;

 private:
  bool readable(uintptr_t address) const noexcept {
    return address % 8 == 0 && address >= stack_.sp && address < end_ && end_ - address >= 8;
  }
  uintptr_t word(uintptr_t address) const noexcept { return Copied{&stack_}.word(address); }

  // By the function's own code. Where its returns do not agree only a direct call of it decides.
  bool follow_code(const Registers& at, const FunctionRange& here, size_t gaps) {
    const std::vector<WayOut> ways = ways_out(at.pc, here.end);
    for (const WayOut& way : ways) {
      uintptr_t return_at = 0;
      uintptr_t bp = 0;
      if (!value(way.return_at, at, &return_at) || !value(way.bp, at, &bp)) continue;
      if (leave(at, return_at, bp, here.begin, ways.size() == 1, gaps)) return true;
    }
    return false;
  }

  bool value(const Expression& of, const Registers& at, uintptr_t* out) const noexcept {
    const bool of_sp = of.kind == Expression::kSp || of.kind == Expression::kAtSp;
    uintptr_t found = of_sp ? at.sp : at.bp;
    if (of.kind == Expression::kAtSp || of.kind == Expression::kAtBp) {
      const uintptr_t from = found + static_cast<uintptr_t>(of.inner);
      if (!readable(from)) return false;
      found = word(from);
    }
    *out = found + static_cast<uintptr_t>(of.add);
    return of.kind != Expression::kUnknown;
  }

  // As if the return address lay there. `known`: the function's code says so; a call of another function that jumps on
  // will then do.
  bool leave(const Registers& at, uintptr_t return_at, uintptr_t bp, uintptr_t start, bool known, size_t gaps) {
    if (!readable(return_at) || return_at < at.sp) return false;
    const uintptr_t back = word(return_at);
    const Call call = call_before(back);
    if (call.kind == Call::kNone) return false;
    // Of a direct call it is known where it goes; code made at run time is called by its address.
    if (call.kind == Call::kDirect) {
      if (start == 0) return false;
      const uintptr_t called = resolve(call.target);
      if (called != start && !(known && jumps_on(called, start))) return false;
    }
    const size_t before = frames.size();
    frames.push_back({at.pc, at.sp, return_at + 8});
    if (follow({back, return_at + 8, bp}, gaps)) return true;
    frames.resize(before);
    return false;
  }

  // By rules to the anchor.
  bool follow(const Registers& from, size_t gaps) {
    const size_t before = frames.size();
    // A caller's address belongs to its call; a walker takes the first one as it is.
    Walker<Copied> walker({from.pc - 1, from.sp, from.bp}, end_, Copied{&stack_});
    Registers here = from;
    while (frames.size() < kMostFrames) {
      if (here.sp > anchor_) break;  // it would have had to lie in one of the frames
      bool over = false;
      End why = End::kFull;
      const uintptr_t cfa = walker.step(&over, &why);
      if (cfa == 0) {
        if (why == End::kGap && cross(here, false, gaps + 1)) return true;
        break;
      }
      frames.push_back({here.pc, here.sp, cfa});
      if (here.sp <= anchor_ && anchor_ < cfa) return true;
      if (over) break;
      here = walker.at();
    }
    frames.resize(before);
    return false;
  }

  // The nearest word that can be a return address and leads to the anchor. Where the function is known, only calls of
  // it; where it is not, only calls of an address that was computed, and only where no other word near by leads there
  // by another way: what is left of earlier calls looks the same.
  bool scan(const Registers& at, uintptr_t start, size_t gaps) {
    size_t candidates = 0;
    const uintptr_t to = end_ - at.sp > kMostScanned * 8 ? at.sp + kMostScanned * 8 : end_;
    for (uintptr_t place = at.sp; place + 8 <= to && place < anchor_ && candidates < kMostCandidates; place += 8) {
      if (!may_return(place, start)) continue;
      ++candidates;
      const size_t before = frames.size();
      if (!leave_with_some_bp(at, place, start, gaps)) continue;
      if (start != 0 || !other_way(at, place, before, gaps)) return true;
      frames.resize(before);
      return false;
    }
    return false;
  }

  bool may_return(uintptr_t place, uintptr_t start) const noexcept {
    const uintptr_t back = word(place);
    if (back < 4096 || !has_rule(back)) return false;
    return call_before(back).kind == (start != 0 ? Call::kDirect : Call::kIndirect);
  }

  // The frame pointer may be as it was, or among the registers that were saved below the return address.
  bool leave_with_some_bp(const Registers& at, uintptr_t place, uintptr_t start, size_t gaps) {
    if (leave(at, place, at.bp, start, false, gaps)) return true;
    for (size_t i = 1; i <= kSavedRegisters && place - 8 * i >= at.sp; ++i) {
      const uintptr_t bp = word(place - 8 * i);
      if (bp > place && bp < end_ && bp % 8 == 0 && leave(at, place, bp, start, false, gaps)) return true;
    }
    return false;
  }

  // Whether a word beyond `place` that none of the frames found has as its return address leads to the anchor, too.
  bool other_way(const Registers& at, uintptr_t place, size_t found, size_t gaps) {
    const size_t count = frames.size();
    for (uintptr_t next = place + 8; next <= place + kNear * 8 && next < anchor_ && readable(next); next += 8) {
      bool known = false;
      for (size_t i = found; i < count; ++i) known = known || frames[i].cfa - 8 == next;
      if (known || !may_return(next, 0)) continue;
      const bool leads = leave_with_some_bp(at, next, 0, gaps);
      frames.resize(count);
      if (leads) return true;
    }
    return false;
  }

  static bool has_rule(uintptr_t back) noexcept {
    const RuleKind kind = rule_at(back - 1).kind;
    return kind != RuleKind::kNone && kind != RuleKind::kOutermost;
  }

  const StackCopy& stack_;
  const uintptr_t end_;
  const uintptr_t anchor_;
  const FindFunction function_;
  void* const user_;
};

}  // namespace

std::vector<NativeFrame> cross_gap(Registers at, bool is_leaf, const StackCopy& stack, uintptr_t anchor,
                                   FindFunction function, void* user) {
  Crossing crossing(stack, anchor, function, user);
  if (!crossing.cross(at, is_leaf, 0)) crossing.frames.clear();
  return std::move(crossing.frames);
}

}  // namespace leadline::unwind
