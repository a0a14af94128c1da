// How long one walk takes by our rules and by libgcc's unwinder, on the same stacks: prints nanoseconds of CPU time per
// stack for both, the depth, and how many of the stacks were the same.
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "unwind/rule_cache.h"
#include "unwind/walk.h"

using namespace leadline::unwind;

#ifdef __x86_64__
namespace {

constexpr int kDepth = 40;
constexpr int kRounds = 2000;

double now_ns() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

_Unwind_Reason_Code note(_Unwind_Context* context, void* to) {
  static_cast<std::vector<uintptr_t>*>(to)->push_back(_Unwind_GetIP(context));
  return _URC_NO_REASON;
}

std::vector<NativeFrame> g_own(512);
std::vector<uintptr_t> g_reference;

__attribute__((noinline)) size_t walk_once() {
  ucontext_t here;
  getcontext(&here);
  const greg_t* const registers = here.uc_mcontext.gregs;
  const Registers from{static_cast<uintptr_t>(registers[REG_RIP]), static_cast<uintptr_t>(registers[REG_RSP]),
                       static_cast<uintptr_t>(registers[REG_RBP])};
  End end = End::kFull;
  return walk(from, stack_end(from.sp, true), g_own.data(), g_own.size(), &end);
}

__attribute__((noinline)) void measure() {
  size_t count = walk_once();  // rules are learned, and libgcc finds its way
  _Unwind_Backtrace(note, &g_reference);
  g_reference.clear();
  int equal = 0;
  double own_ns = now_ns();
  for (int i = 0; i < kRounds; ++i) count = walk_once();
  own_ns = now_ns() - own_ns;
  double reference_ns = now_ns();
  for (int i = 0; i < kRounds; ++i) {
    g_reference.clear();
    _Unwind_Backtrace(note, &g_reference);
    while (!g_reference.empty() && g_reference.back() == 0) g_reference.pop_back();
    // The first frames are walk_once() and this one, each at its own instruction.
    bool same = g_reference.size() + 1 == count;
    for (size_t at = 1; same && at < g_reference.size(); ++at) same = g_reference[at] == g_own[at + 1].pc;
    equal += same ? 1 : 0;
  }
  reference_ns = now_ns() - reference_ns;
  printf("depth %zu own_ns %.0f libgcc_ns %.0f ratio %.1f equal %d of %d\n", count, own_ns / kRounds,
         reference_ns / kRounds, reference_ns / own_ns, equal, kRounds);
}

int order(const void* left, const void* right);
__attribute__((noinline)) void down(int depth) {
  if (depth == 0) return measure();
  if (depth % 8 == 0) {  // through the C library
    int numbers[2] = {depth, depth};
    static bool inside = false;
    if (!inside) {
      qsort(numbers, 2, sizeof(int), order);
      return;
    }
  }
  down(depth - 1);
  asm volatile("");
}
int order(const void* left, const void*) {
  down(*static_cast<const int*>(left) - 1);
  return 0;
}

}  // namespace
#endif

int main() {
#ifdef __x86_64__
  if (available()) down(kDepth);
#endif
  return 0;
}
