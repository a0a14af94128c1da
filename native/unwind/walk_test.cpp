// The walk against libgcc's unwinder, frame for frame, on stacks of every shape that a test can make.
#include "unwind/walk.h"

#include <doctest/doctest.h>
#include <pthread.h>
#include <signal.h>
#include <ucontext.h>
#include <unwind.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <random>
#include <thread>
#include <vector>

#include "unwind/rule_cache.h"

using namespace leadline::unwind;

#ifdef __x86_64__
namespace {

constexpr size_t kRoom = 2000;

// Has its memory beforehand: a signal handler may not ask for any.
struct Stacks {
  Stacks() {
    own.reserve(kRoom);
    reference.reserve(kRoom);
  }
  std::vector<NativeFrame> own;
  std::vector<NativeFrame> reference;
  End end = End::kFull;
};

_Unwind_Reason_Code note(_Unwind_Context* context, void* to) {
  int exact = 0;
  const uintptr_t pc = _Unwind_GetIPInfo(context, &exact);
  // The end of the frame below this one is where this one begins.
  static_cast<std::vector<NativeFrame>*>(to)->push_back({pc, _Unwind_GetCFA(context), 0});
  return _URC_NO_REASON;
}

__attribute__((noinline)) void read_both(bool main_thread, Stacks& stacks) {
  stacks.own.resize(kRoom);
  stacks.reference.clear();
  ucontext_t here;
  getcontext(&here);
  const Registers from{static_cast<uintptr_t>(here.uc_mcontext.gregs[REG_RIP]),
                       static_cast<uintptr_t>(here.uc_mcontext.gregs[REG_RSP]),
                       static_cast<uintptr_t>(here.uc_mcontext.gregs[REG_RBP])};
  const size_t count = walk(from, stack_end(from.sp, main_thread), stacks.own.data(), stacks.own.size(), &stacks.end);
  stacks.own.resize(count);
  _Unwind_Backtrace(note, &stacks.reference);
}

Stacks both(bool main_thread) {
  Stacks stacks;
  read_both(main_thread, stacks);
  return stacks;
}

// Both begin in read_both(), at different instructions of it.
void compare(const Stacks& stacks) {
  CHECK(stacks.end == End::kOutermost);
  std::vector<NativeFrame> reference = stacks.reference;
  while (!reference.empty() && reference.back().pc == 0) reference.pop_back();
  REQUIRE(stacks.own.size() == reference.size());
  for (size_t i = 1; i < reference.size(); ++i) {
    CHECK(stacks.own[i].pc == reference[i].pc);
    CHECK(stacks.own[i - 1].cfa == stacks.own[i].sp);
    CHECK(stacks.own[i].cfa % 8 == 0);
  }
}

bool is_main() { return gettid() == getpid(); }

std::mt19937 g_random(7);

int order(const void*, const void*) {
  static int calls = 0;
  if (calls++ % 5 == 0) compare(both(is_main()));
  return 0;
}

// A frame that keeps its own size in a register, one with an aligned stack, one called from the C library.
__attribute__((noinline)) void down(int depth);
__attribute__((noinline)) void with_alloca(int depth) {
  auto* const some = static_cast<volatile char*>(__builtin_alloca(static_cast<size_t>(16 + depth * 24)));
  some[0] = 1;
  down(depth - 1);
  some[1] = 2;
}
__attribute__((noinline, force_align_arg_pointer)) void aligned(int depth) {
  alignas(64) [[maybe_unused]] volatile char buffer[128];
  buffer[0] = 1;
  down(depth - 1);
  buffer[1] = 2;
}
__attribute__((noinline)) void through_library(int depth) {
  int numbers[2] = {depth, depth};
  qsort(numbers, 2, sizeof(int), order);
  const std::function<void()> call = [depth] { down(depth - 1); };
  call();
}
__attribute__((noinline)) void throwing(int depth) {
  try {
    down(depth - 1);
    if (depth % 2 == 0) throw depth;
  } catch (int) {
    compare(both(is_main()));
  }
}
void down(int depth) {
  if (depth == 0) return compare(both(is_main()));
  switch (g_random() % 5) {
    case 0:
      return with_alloca(depth);
    case 1:
      return aligned(depth);
    case 2:
      return through_library(depth);
    case 3:
      return throwing(depth);
    default:
      down(depth - 1);
      asm volatile("");
  }
}

std::atomic<bool> g_compared{false};
Stacks g_in_signal;

void on_signal(int, siginfo_t*, void*) {
  read_both(true, g_in_signal);
  g_compared = true;
}

}  // namespace

TEST_CASE("stacks of every shape are those that libgcc finds") {
  REQUIRE(available());
  for (int round = 0; round < 300; ++round) down(round % 40);
  CHECK(rules_known() > 20);
  std::thread([] {
    for (int round = 0; round < 50; ++round) down(round % 20);
  }).join();
}

TEST_CASE("a signal handler's stack goes on with what was interrupted") {
  REQUIRE(available());
  struct sigaction own {};
  struct sigaction before {};
  own.sa_sigaction = on_signal;
  own.sa_flags = SA_SIGINFO;
  sigaction(SIGUSR1, &own, &before);
  raise(SIGUSR1);
  sigaction(SIGUSR1, &before, nullptr);
  REQUIRE(g_compared.load());
  compare(g_in_signal);
}

TEST_CASE("a walk stays on the stack and within its room") {
  REQUIRE(available());
  std::vector<NativeFrame> frames(64);
  End end = End::kFull;
  ucontext_t here;
  getcontext(&here);
  const Registers from{static_cast<uintptr_t>(here.uc_mcontext.gregs[REG_RIP]),
                       static_cast<uintptr_t>(here.uc_mcontext.gregs[REG_RSP]),
                       static_cast<uintptr_t>(here.uc_mcontext.gregs[REG_RBP])};
  CHECK(walk(from, stack_end(from.sp, is_main()), frames.data(), 2, &end) == 2);
  CHECK(end == End::kFull);
  CHECK(walk(from, from.sp + 8, frames.data(), frames.size(), &end) == 1);
  CHECK(end == End::kBroken);
  CHECK(walk({0x10, from.sp, from.bp}, stack_end(from.sp, is_main()), frames.data(), frames.size(), &end) == 1);
  CHECK(end == End::kGap);
  CHECK(walk({from.pc, from.sp + 4, from.bp}, stack_end(from.sp, is_main()), frames.data(), 9, &end) == 0);
  // Whatever the registers hold, nothing outside of the stack is read.
  for (int round = 0; round < 20000; ++round) {
    const Registers wild{from.pc + g_random() % 64, from.sp + g_random() % 4096 / 8 * 8, g_random()};
    walk(wild, stack_end(from.sp, is_main()), frames.data(), frames.size(), &end);
  }
}

TEST_CASE("another stack is told from the thread's own") {
  CHECK(stack_end(reinterpret_cast<uintptr_t>(&order), is_main()) == 0);
  int here = 0;
  CHECK(stack_end(reinterpret_cast<uintptr_t>(&here), is_main()) > reinterpret_cast<uintptr_t>(&here));
  std::thread([] {
    int there = 0;
    CHECK(stack_end(reinterpret_cast<uintptr_t>(&there), false) > reinterpret_cast<uintptr_t>(&there));
  }).join();
}
#endif
