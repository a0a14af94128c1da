#include "providers/cpu/signal_stacks.h"

#include <doctest/doctest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

using namespace leadline::cpu;

namespace {

constexpr unsigned char kCanary = 0x5a;
constexpr size_t kBelow = 32 * 1024;
std::atomic<int> g_handled{0};

pid_t own_tid() { return static_cast<pid_t>(syscall(SYS_gettid)); }
void count(int) { g_handled.fetch_add(1); }

struct Handled {
  Handled() {
    struct sigaction own {};
    own.sa_handler = count;
    own.sa_flags = SA_RESTART | SA_ONSTACK;
    sigaction(SIGUSR1, &own, &before);
    g_handled = 0;
  }
  ~Handled() { sigaction(SIGUSR1, &before, nullptr); }
  struct sigaction before {};
};

// The thread sanitizer hands a signal over at the next call that it knows, and a loop of instructions has none.
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
// Waits for `go` to become zero with the stack pointer in a buffer of the heap, as oneDNN's matrix products work.
// Returns how many bytes below the buffer something has written to.
__attribute__((noinline)) size_t wait_on_heap(const std::atomic<int>* go) {
  std::vector<unsigned char> heap(kBelow + 4096, kCanary);
  unsigned char* const top = heap.data() + kBelow;
  __asm__ volatile(
      "mov %%rsp, %%r12\n mov %0, %%rsp\n"
      "1: pause\n cmpl $0, (%1)\n jne 1b\n"
      "mov %%r12, %%rsp\n"
      :
      : "r"(top), "r"(go)
      : "r12", "memory", "cc");
  return static_cast<size_t>(std::count_if(heap.data(), top, [](unsigned char one) { return one != kCanary; }));
}

// Signals `tid` until 200 have been handled.
void interrupt(std::atomic<pid_t>& tid, std::atomic<int>& go) {
  while (tid.load() == 0) sched_yield();
  while (g_handled.load() < 200) {
    syscall(SYS_tgkill, getpid(), tid.load(), SIGUSR1);
    sched_yield();
  }
  go = 0;
}
#endif

}  // namespace

#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
TEST_CASE("a signal overwrites nothing in a new thread whose stack pointer is in the heap") {
  const Handled handled;
  SignalStacks stacks;
  stacks.open();
  std::atomic<pid_t> tid{0};
  std::atomic<int> go{1};
  size_t written = 0;
  std::thread thread([&] {
    tid = own_tid();
    CHECK(has_signal_stack(own_tid()));
    written = wait_on_heap(&go);
  });
  interrupt(tid, go);
  thread.join();
  CHECK(written == 0);
  stacks.close();
}

TEST_CASE("a thread that was there before has a stack once it lets go of a mutex") {
  const Handled handled;
  SignalStacks stacks;
  std::mutex mutex;
  std::atomic<pid_t> tid{0};
  std::atomic<pid_t> ready{0};
  std::atomic<bool> opened{false};
  std::atomic<int> go{1};
  size_t written = 0;
  std::thread thread([&] {
    tid = own_tid();
    while (!opened.load()) sched_yield();
    { const std::lock_guard lock(mutex); }
    ready = own_tid();
    written = wait_on_heap(&go);
  });
  while (tid.load() == 0) sched_yield();
  CHECK(!has_signal_stack(tid));
  stacks.open();
  stacks.look(true);
  opened = true;
  while (ready.load() == 0) sched_yield();
  CHECK(has_signal_stack(tid));
  interrupt(ready, go);
  thread.join();
  CHECK(written == 0);
  stacks.close();
}

#endif

#ifdef __x86_64__
TEST_CASE("an alternate stack that was taken away is put back by the handler") {
  std::thread([] {
    stack_t none{};
    none.ss_flags = SS_DISABLE;
    stack_t theirs{};
    REQUIRE(sigaltstack(&none, &theirs) == 0);  // sanitizers have one on each thread
    REQUIRE(take_signal_stack());
    stack_t ours{};
    sigaltstack(nullptr, &ours);
    stack_t context = none;
    put_signal_stack_back(&context);
    CHECK(context.ss_sp == ours.ss_sp);
    CHECK(context.ss_size == ours.ss_size);
    CHECK(context.ss_flags == 0);
    if ((theirs.ss_flags & SS_DISABLE) == 0) sigaltstack(&theirs, nullptr);
  }).join();
}
#endif

TEST_CASE("a thread that has ended is no longer known, and its stack is unmapped") {
  pid_t tid = 0;
  void* stack = nullptr;
  for (int i = 0; i < 3; ++i) {
    std::thread([&] {
      tid = own_tid();
      CHECK(take_signal_stack());
      CHECK(take_signal_stack());  // once is enough
      stack_t now{};
      sigaltstack(nullptr, &now);
      stack = now.ss_sp;
      CHECK(has_signal_stack(tid));
    }).join();
    CHECK(!has_signal_stack(tid));
  }
}

TEST_CASE("a stack of the program with room enough stays its own") {
  std::thread([] {
    static std::vector<char> own(256 * 1024);
    stack_t theirs{};
    theirs.ss_sp = own.data();
    theirs.ss_size = own.size();
    REQUIRE(sigaltstack(&theirs, nullptr) == 0);
    CHECK(take_signal_stack());
    stack_t now{};
    sigaltstack(nullptr, &now);
    CHECK(now.ss_sp == own.data());
    CHECK(has_signal_stack(own_tid()));
    now.ss_flags = SS_DISABLE;
    sigaltstack(&now, nullptr);
  }).join();
}

TEST_CASE("calls are what they were after closing") {
  SignalStacks stacks;
  stacks.open();
  stacks.close();
  std::thread([] { CHECK(!has_signal_stack(own_tid())); }).join();
}
