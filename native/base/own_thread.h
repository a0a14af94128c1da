// How every thread of ours begins.
//
// In a forked child the C library hands out the memory of threads that are not there. Of one that was ending when the
// program forked it has not cleared what that thread kept for libraries (pthread_setspecific): the new thread would
// pass for the old one, and its end would call what ends that (MKL's then waits for ever for a lock that was held).
#pragma once

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <thread>
#include <utility>

namespace leadline {

// The process that loaded this library; in a forked child it is another one.
inline const pid_t loading_process = getpid();

// Nothing is kept for the calling thread that it has not kept itself; to be called first.
//
// Only in a forked child: elsewhere there is nothing to find but what a tool put there before the thread's own code
// began. Not under sanitizers at all, for that reason: the address sanitizer would keep the record of each such
// thread for ever, and the thread sanitizer spins without its own.
inline void begin_own_thread(pid_t loaded_in = loading_process) noexcept {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  if (getpid() == loaded_in) return;
  for (pthread_key_t key = 0; key < PTHREAD_KEYS_MAX; ++key) {
    if (pthread_getspecific(key) != nullptr) pthread_setspecific(key, nullptr);
  }
#else
  static_cast<void>(loaded_in);
#endif
}

// A thread of ours that runs `body`. It begins with all signals blocked: one that the program blocks on its own
// threads, to wait for it, would else be delivered here. Throws std::system_error where the system has no room for it.
template <typename Body>
std::thread own_thread(Body body) {
  struct Blocked {
    Blocked() noexcept {
      sigset_t all;
      sigfillset(&all);
      pthread_sigmask(SIG_SETMASK, &all, &before);
    }
    ~Blocked() { pthread_sigmask(SIG_SETMASK, &before, nullptr); }
    Blocked(const Blocked&) = delete;
    Blocked& operator=(const Blocked&) = delete;
    sigset_t before{};
  };
  const Blocked blocked;
  return std::thread([body = std::move(body)]() mutable {
    begin_own_thread();
    body();
  });
}

}  // namespace leadline
