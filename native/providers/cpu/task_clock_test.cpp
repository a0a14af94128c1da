#include "providers/cpu/task_clock.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "base/clock.h"
#include "providers/cpu/handler.h"

using namespace leadline;
using namespace leadline::cpu;

namespace {

constexpr int64_t kInterval_ns = 1'000'000;
std::atomic<int> g_interrupted{0};
std::atomic<int> g_elsewhere{0};
std::atomic<pid_t> g_wanted{0};

pid_t own_tid() { return static_cast<pid_t>(syscall(SYS_gettid)); }

void count(int, siginfo_t* info, void*) {
  const bool here = own_tid() == g_wanted.load() && info->si_code > 0;
  (here ? g_interrupted : g_elsewhere).fetch_add(1);
}

// Outside of the kernel, mostly.
void run_for(int64_t ns) {
  std::atomic<int> turns{0};
  for (const int64_t begin = thread_cpu_ns(); thread_cpu_ns() - begin < ns;) {
    for (int i = 0; i < 20'000; ++i) turns.store(i, std::memory_order_relaxed);
  }
}

// The signal is ours while it exists.
struct Counting {
  Counting() {
    struct sigaction own {};
    own.sa_sigaction = count;
    own.sa_flags = SA_SIGINFO | SA_RESTART;
    sigaction(kTaskClockSignal, &own, &before);
    g_interrupted = 0;
    g_elsewhere = 0;
    g_wanted = own_tid();
  }
  ~Counting() { sigaction(kTaskClockSignal, &before, nullptr); }
  struct sigaction before {};
};

int perf_file() {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    if (std::filesystem::read_symlink(entry, gone).string().find("perf_event") != std::string::npos)
      return std::stoi(entry.path().filename());
  }
  return -1;
}

}  // namespace

TEST_CASE("A thread is interrupted when it has run for an interval, no other one is, and none afterwards") {
  const Counting counting;
  TaskClock clock;
  if (!clock.open(own_tid(), kInterval_ns, kTaskClockSignal)) return;  // this system lets nobody count
  std::thread other([] { run_for(20 * kInterval_ns); });
  run_for(100 * kInterval_ns);
  other.join();
  CHECK(g_interrupted >= 50);  // hypervisors may keep the core for longer than an interval
  CHECK(g_interrupted <= 110);
  CHECK(g_elsewhere == 0);
  clock.close();
  const int before = g_interrupted;
  run_for(10 * kInterval_ns);
  CHECK(g_interrupted == before);
  CHECK_FALSE(clock.is_open());
}

TEST_CASE("A thread that ends leaves its clock to be closed, also when it ends by itself") {
  const Counting counting;
  for (int i = 0; i < 50; ++i) {
    TaskClock clock;
    std::thread([&] {
      if (clock.open(own_tid(), kInterval_ns / 10, kTaskClockSignal)) run_for(kInterval_ns / 2);
    }).join();
    clock.close();
  }
}

TEST_CASE("A file that the program has opened under the clock's number stays open") {
  TaskClock clock;
  if (!clock.open(own_tid(), 1'000 * kInterval_ns, kTaskClockSignal)) return;
  const int number = perf_file();
  REQUIRE(number >= 0);
  const int own = open("/dev/null", O_RDONLY | O_CLOEXEC);
  REQUIRE(dup2(own, number) == number);
  CHECK_FALSE(clock.is_open());
  clock.close();
  CHECK(fcntl(number, F_GETFD) >= 0);
  close(number);
  close(own);
}
