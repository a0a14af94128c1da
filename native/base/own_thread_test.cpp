#include "base/own_thread.h"

#include <doctest/doctest.h>

#include <thread>

using leadline::begin_own_thread;

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
