// Walks in signal handlers, 10,000 a second on every thread, beside all that changes what they read: libraries that
// come and go, exceptions, threads, forks. LEADLINE_STORM_SECONDS: how long (`make storm`).
#include <dlfcn.h>
#include <doctest/doctest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <thread>
#include <vector>

#include "unwind/rule_cache.h"
#include "unwind/walk.h"

using namespace leadline::unwind;

// The thread sanitizer hands signals over at calls of its own, and not where they come.
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t kRoom = 512;
constexpr long kIntervalNs = 100'000;

struct Counts {
  std::atomic<uint64_t> samples{0};
  std::atomic<uint64_t> late{0};  // that the kernel counted and did not deliver
  std::array<std::atomic<uint64_t>, 4> by_end{};
  std::atomic<uint64_t> ours{0};     // in threads of ours that load no libraries
  std::atomic<uint64_t> whole{0};    // of these
  std::atomic<uint64_t> strange{0};  // whole ones of ours where another function holds the root's variable
  std::atomic<uint64_t> forks{0};
  std::atomic<uint64_t> threads{0};
  std::atomic<uint64_t> exceptions{0};
  std::atomic<uint64_t> libraries{0};
} g_counts;
std::atomic<bool> g_over{false};
thread_local uintptr_t t_anchor __attribute__((tls_model("initial-exec"))) = 0;  // a variable of the thread's root
thread_local uintptr_t t_root __attribute__((tls_model("initial-exec"))) = 0;    // where that goes on
thread_local bool t_loads __attribute__((tls_model("initial-exec"))) = false;

// As the loader may be at work in what was interrupted, nothing here may ask it for anything.
void on_signal(int, siginfo_t* info, void* context) {
  const int saved = errno;
  const greg_t* const registers = static_cast<const ucontext_t*>(context)->uc_mcontext.gregs;
  const Registers from{static_cast<uintptr_t>(registers[REG_RIP]), static_cast<uintptr_t>(registers[REG_RSP]),
                       static_cast<uintptr_t>(registers[REG_RBP])};
  std::array<NativeFrame, kRoom> frames;
  End end = End::kFull;
  const size_t count = walk(from, stack_end(from.sp, false), frames.data(), frames.size(), &end);
  g_counts.samples.fetch_add(1, std::memory_order_relaxed);
  g_counts.late.fetch_add(static_cast<uint64_t>(info->si_overrun), std::memory_order_relaxed);
  g_counts.by_end[static_cast<size_t>(end)].fetch_add(1, std::memory_order_relaxed);
  // Libraries that go end in code of the C runtime that has no unwind information, in sanitized programs for long.
  if (t_anchor != 0 && !t_loads) {
    g_counts.ours.fetch_add(1, std::memory_order_relaxed);
    if (end == End::kOutermost) g_counts.whole.fetch_add(1, std::memory_order_relaxed);
  }
  if (end == End::kOutermost && t_anchor != 0) {
    bool known = false;
    for (size_t i = 0; i < count; ++i) {
      if (frames[i].sp <= t_anchor && t_anchor < frames[i].cfa)
        known = frames[i].pc >= t_root - 4096 && frames[i].pc < t_root + 4096;
    }
    if (!known) g_counts.strange.fetch_add(1, std::memory_order_relaxed);
  }
  errno = saved;
}

// For the thread that it lives on.
class Timer {
 public:
  Timer() {
    sigevent event{};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = SIGRTMIN + 1;
    event._sigev_un._tid = gettid();
    REQUIRE(timer_create(CLOCK_MONOTONIC, &event, &timer_) == 0);
    itimerspec every{};
    every.it_interval.tv_nsec = every.it_value.tv_nsec = kIntervalNs;
    REQUIRE(timer_settime(timer_, 0, &every, nullptr) == 0);
  }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  ~Timer() { timer_delete(timer_); }

 private:
  timer_t timer_{};
};

__attribute__((noinline)) void work(int depth) {
  auto* const some = static_cast<volatile char*>(__builtin_alloca(static_cast<size_t>(16 + depth * 24)));
  some[0] = 1;
  if (depth > 0) work(depth - 1);
  for (int i = 0; i < 200; ++i) some[0] = static_cast<char>(some[0] + i);
}

void throws(void* depth) {
  work(3);
  if (*static_cast<int*>(depth) % 2 == 0) throw 1;
}

void raises(int round) {
  try {
    throws(&round);
  } catch (int) {
    g_counts.exceptions.fetch_add(1, std::memory_order_relaxed);
  }
  work(round % 20);
}

void opens(int round) {
  t_loads = true;
  void* const library = dlopen(round % 2 == 0 ? STORM_FIXTURE_24 : STORM_FIXTURE_136, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return;
  auto* const through = reinterpret_cast<void (*)(void (*)(void*), void*, int)>(dlsym(library, "storm_through"));
  try {
    through(throws, &round, round % 3);
  } catch (int) {
    g_counts.exceptions.fetch_add(1, std::memory_order_relaxed);
  }
  dlclose(library);
  renew();
  g_counts.libraries.fetch_add(1, std::memory_order_relaxed);
}

void forks(int) {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  int status = 0;
  while (child > 0 && waitpid(child, &status, 0) < 0) {
  }
  g_counts.forks.fetch_add(1, std::memory_order_relaxed);
}

void threads(int round);

__attribute__((noinline)) void root(void (*body)(int), int rounds) {
  volatile char anchor = 0;
  const Timer timer;
  ucontext_t here;
  getcontext(&here);
  t_root = static_cast<uintptr_t>(here.uc_mcontext.gregs[REG_RIP]);
  t_anchor = reinterpret_cast<uintptr_t>(&anchor);
  for (int round = 0; round < rounds && !g_over.load(std::memory_order_relaxed); ++round) body(round);
  t_anchor = 0;
}

void threads(int round) {
  std::thread(root, raises, 3 + round % 7).join();
  g_counts.threads.fetch_add(1, std::memory_order_relaxed);
}

double resident_mb() {
  std::ifstream file("/proc/self/statm");
  double size = 0;
  double resident = 0;
  file >> size >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1e6;
}

}  // namespace

TEST_CASE("a storm of walks beside libraries, exceptions, threads and forks") {
  REQUIRE(available());
  const char* const asked = std::getenv("LEADLINE_STORM_SECONDS");
  const std::chrono::seconds length(asked != nullptr ? std::atol(asked) : 2);
  struct sigaction own {};
  struct sigaction before {};
  own.sa_sigaction = on_signal;
  own.sa_flags = SA_SIGINFO | SA_RESTART;
  sigaction(SIGRTMIN + 1, &own, &before);
  std::vector<std::thread> all;
  for (void (*body)(int) : {raises, opens, threads, forks}) all.emplace_back(root, body, 1 << 30);
  const auto end = Clock::now() + length;
  while (Clock::now() < end) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  g_over = true;
  for (std::thread& one : all) one.join();
  sigaction(SIGRTMIN + 1, &before, nullptr);
  uint64_t ends = 0;
  for (const auto& one : g_counts.by_end) ends += one;
  std::printf(
      "%lu samples (%lu more were late): whole %lu, gaps %lu, broken %lu, full %lu; beside %lu exceptions, %lu "
      "libraries, %lu threads, %lu forks; of %lu samples in threads without libraries %lu whole\n",
      g_counts.samples.load(), g_counts.late.load(), g_counts.by_end[0].load(), g_counts.by_end[1].load(),
      g_counts.by_end[2].load(), g_counts.by_end[3].load(), g_counts.exceptions.load(), g_counts.libraries.load(),
      g_counts.threads.load(), g_counts.forks.load(), g_counts.ours.load(), g_counts.whole.load());
  CHECK(g_counts.samples > 100);
  CHECK(ends == g_counts.samples);
  CHECK(g_counts.strange == 0);
  CHECK(g_counts.whole * 100 > g_counts.ours * 95);
  for (const auto* one : {&g_counts.exceptions, &g_counts.libraries, &g_counts.threads, &g_counts.forks})
    CHECK(one->load() > 0);
}

TEST_CASE("rules that are forgotten take no memory") {
  REQUIRE(available());
  const auto some = reinterpret_cast<uintptr_t>(&resident_mb);
  double after_few = 0;
  for (int round = 0; round < 220; ++round) {
    void* const library = dlopen(STORM_FIXTURE_24, RTLD_NOW | RTLD_LOCAL);
    REQUIRE(library != nullptr);
    const uint64_t before = renewals();
    renew();
    CHECK(renewals() == before + 1);
    for (uintptr_t pc = some; pc < some + 1500; ++pc) static_cast<void>(rule_at(pc));
    dlclose(library);
    if (round == 20) after_few = resident_mb();
  }
  CHECK(resident_mb() - after_few < 40);
}
#endif
