#include "base/own_thread.h"

#include <doctest/doctest.h>

#include <thread>

using leadline::begin_own_thread;
using leadline::own_thread;

TEST_CASE("The program's signals are not for a thread of ours, and its own thread blocks what it blocked before") {
  sigset_t before;
  sigset_t there;
  sigset_t after;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  own_thread([&] { pthread_sigmask(SIG_SETMASK, nullptr, &there); }).join();
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1, SIGUSR2, SIGCHLD}) {
    CHECK(sigismember(&there, signal) == 1);
    CHECK(sigismember(&after, signal) == sigismember(&before, signal));
  }
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_CASE("A thread of ours keeps nothing in a forked child that another one left behind") {
  static int ended = 0;
  pthread_key_t key = 0;
  REQUIRE(pthread_key_create(&key, [](void*) { ++ended; }) == 0);
  int thing = 0;
  std::thread([&] {
    pthread_setspecific(key, &thing);  // as if found at its beginning
    begin_own_thread();
    CHECK(pthread_getspecific(key) == &thing);
    begin_own_thread(getppid());
    CHECK(pthread_getspecific(key) == nullptr);
  }).join();
  CHECK(ended == 0);
  pthread_key_delete(key);
}
#endif
