#include "session/termination.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <utility>

namespace leadline::termination {
namespace {

constexpr std::array kSignals = {SIGTERM, SIGHUP, SIGXCPU};

// A signal handler can reach only globals; all are lock-free.
std::atomic<pid_t> g_listener{0};  // the process that listens; its forked child has another number
Wake g_wake;                       // never destroyed: a handler may post it while its listener goes
std::atomic<int> g_pending{0};
// Asks a second time where a segment hangs, as on a network file system that has gone.
constexpr itimerspec kLongest = {{0, 0}, {5, 0}};
timer_t g_limit;
bool g_limited = false;

void on_signal(int signal) {
  const int saved_errno = errno;
  if (g_listener.load() == getpid()) {
    int first = 0;
    if (!g_pending.compare_exchange_strong(first, signal)) {
      die(first);  // the last segment takes too long: whoever asks a second time does not wait for it
    } else {
      if (g_limited) timer_settime(g_limit, 0, &kLongest, nullptr);
      g_wake.post();
    }
  } else {
    die(signal);
  }
  errno = saved_errno;
}

}  // namespace

Wake* listen() noexcept {
  g_pending.store(0);
  sigevent again{};
  again.sigev_notify = SIGEV_SIGNAL;
  again.sigev_signo = SIGTERM;
  g_limited = timer_create(CLOCK_MONOTONIC, &again, &g_limit) == 0;
  g_wake.clear();
  g_listener.store(getpid());
  for (const int signal : kSignals) {
    struct sigaction before {};
    if (sigaction(signal, nullptr, &before) != 0) continue;
    if ((before.sa_flags & SA_SIGINFO) != 0 || before.sa_handler != SIG_DFL) continue;
    struct sigaction ours {};
    ours.sa_handler = on_signal;
    ours.sa_flags = SA_RESTART | SA_ONSTACK;
    sigaction(signal, &ours, nullptr);
  }
  return &g_wake;
}

void forget() noexcept {
  const bool own = g_listener.exchange(0) == getpid();
  if (own && std::exchange(g_limited, false)) timer_delete(g_limit);  // the child of a fork has none
  for (const int signal : kSignals) {
    struct sigaction now {};
    if (sigaction(signal, nullptr, &now) != 0 || (now.sa_flags & SA_SIGINFO) != 0 || now.sa_handler != on_signal)
      continue;
    struct sigaction restored {};
    restored.sa_handler = SIG_DFL;
    sigaction(signal, &restored, nullptr);
  }
}

int pending() noexcept { return g_pending.load(); }

void die(int signal) noexcept {
  struct sigaction restored {};
  restored.sa_handler = SIG_DFL;
  sigaction(signal, &restored, nullptr);
  // To the process: the calling thread may have the signal blocked, as a handler and the flush thread do.
  kill(getpid(), signal);
}

}  // namespace leadline::termination
