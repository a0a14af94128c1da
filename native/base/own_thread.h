// How every thread of ours begins.
//
// In a forked child the C library hands out the memory of threads that are not there. Of one that was ending when the
// program forked it has not cleared what that thread kept for libraries (pthread_setspecific): the new thread would
// pass for the old one, and its end would call what ends that (MKL's then waits for ever for a lock that was held).
#pragma once

#include <limits.h>
#include <pthread.h>

namespace leadline {

// Nothing is kept for the calling thread that it has not kept itself; to be called first.
// Not under the thread sanitizer, which keeps its own view of a thread that way and spins for ever without it.
inline void begin_own_thread() noexcept {
#ifndef __SANITIZE_THREAD__
  for (pthread_key_t key = 0; key < PTHREAD_KEYS_MAX; ++key) {
    if (pthread_getspecific(key) != nullptr) pthread_setspecific(key, nullptr);
  }
#endif
}

}  // namespace leadline
