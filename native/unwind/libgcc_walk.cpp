#include "unwind/libgcc_walk.h"

#include <unwind.h>

namespace leadline::unwind {
namespace {

constexpr size_t kMostSteps = 8192;

struct Between {
  uintptr_t above;
  uintptr_t stop;
  uintptr_t* out;
  size_t room;
  size_t count = 0;
  size_t steps = 0;
  uintptr_t inner = 0;  // the frame before, whose end is not known until the next one begins
  bool over = false;    // a frame ends beyond `stop`
  bool full = false;    // of frames, or of steps
};

_Unwind_Reason_Code next(_Unwind_Context* context, void* to) {
  auto& walk = *static_cast<Between*>(to);
  const uintptr_t inner = walk.inner;
  const uintptr_t cfa = _Unwind_GetCFA(context);  // where this frame begins and the one before ends
  int exact = 0;
  walk.inner = _Unwind_GetIPInfo(context, &exact);
  if (++walk.steps > kMostSteps) {
    walk.full = true;
    return _URC_NORMAL_STOP;
  }
  if (inner == 0 || cfa <= walk.above) return _URC_NO_REASON;
  walk.over = cfa > walk.stop;
  walk.full = !walk.over && walk.count == walk.room;
  if (walk.over || walk.full) return _URC_NORMAL_STOP;
  walk.out[walk.count++] = inner - 1;
  return _URC_NO_REASON;
}

}  // namespace

size_t walk_between_by_libgcc(uintptr_t above, uintptr_t stop, uintptr_t* out, size_t room, bool* whole) noexcept {
  Between walk{.above = above, .stop = stop, .out = out, .room = room};
  _Unwind_Backtrace(next, &walk);
  // The last one has an end only where its own unwind information says that nobody called it: then one without an
  // address follows.
  *whole = !walk.full && (walk.over || walk.inner == 0);
  return walk.count;
}

}  // namespace leadline::unwind
