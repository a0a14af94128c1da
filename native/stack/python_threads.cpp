#include "stack/python_threads.h"

#include <Python.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>

namespace leadline {
namespace {

// Where the C library keeps the number of a thread in what pthread_self() is the address of; 0: not known.
uintptr_t place_of_tid() noexcept {
  constexpr uintptr_t kMost = 2048;
  const auto begin = static_cast<uintptr_t>(pthread_self());
  const auto wanted = static_cast<pid_t>(syscall(SYS_gettid));
  for (uintptr_t at = 0; at < kMost; at += sizeof(pid_t)) {
    pid_t found = 0;
    if (read_safely(begin + at, &found, sizeof found) && found == wanted) return at;
  }
  return 0;
}

}  // namespace

// The list may change while it is read, so nothing of it is taken for granted.
uintptr_t python_state_of(SafePages& memory, pid_t tid) noexcept {
  constexpr size_t kMostThreads = 1u << 14;
  static const uintptr_t at = place_of_tid();
  if (at == 0) return 0;
  auto state = reinterpret_cast<uintptr_t>(PyInterpreterState_ThreadHead(PyInterpreterState_Main()));
  for (size_t steps = 0; state != 0 && steps < kMostThreads; ++steps) {
    unsigned long ident = 0;
    pid_t found = 0;
    if (!memory.read(state + offsetof(PyThreadState, thread_id), &ident)) return 0;
    if (ident != 0 && memory.read(ident + at, &found) && found == tid) return state;
    if (!memory.read(state + offsetof(PyThreadState, next), &state)) return 0;
  }
  return 0;
}

}  // namespace leadline
