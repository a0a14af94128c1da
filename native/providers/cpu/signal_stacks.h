// An alternate signal stack for every thread that is sampled, there before its first sample.
//
// The kernel writes the frame of a signal below the stack pointer, and compiled code may point that anywhere: oneDNN's
// matrix products (in jaxlib, TensorFlow and torch) use a buffer of the heap as their stack, so any handler without a
// stack of its own overwrites what the heap holds before that buffer. Only the thread itself can ask for such a stack,
// and only where its stack pointer is known to be good. New threads do it first of all (calls of pthread_create are
// redirected); those that are there already do it when they next let go of a mutex. Who has none is not interrupted.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/got_patch.h"

namespace leadline::cpu {

// The calling thread has room for a sample from now on: on the alternate stack that it has, or on one of ours that goes
// with it. False where there is no memory, and where malloc is needed and may not be called: inside of an allocator
// that lets go of a mutex, if the program had made many thread-specific keys before this library was loaded.
bool take_signal_stack(bool may_allocate = true) noexcept;
// Whether that thread has. Any thread.
bool has_signal_stack(pid_t tid) noexcept;
// Signal handler, on a thread whose alternate stack has been taken away: it gets ours back when the handler returns.
void put_signal_stack_back(stack_t* of_context) noexcept;
// In the child of a fork: only the calling thread is left.
void forget_signal_stacks() noexcept;

// Keeps calls redirected, also those of libraries that are loaded later. Any thread.
class SignalStacks {
 public:
  void open();
  // `missing`: whether a thread without a stack is known. Now and then.
  void look(bool missing);
  // A library may have been loaded by this thread. Waits for nobody.
  void loaded() noexcept;
  void close() noexcept;
  // In the child of a fork.
  void abandon() noexcept;

 private:
  void renew();

  std::mutex changing_;
  std::vector<GotPatch> lasting_;   // while open
  std::vector<GotPatch> unlocked_;  // while a thread has no stack
  std::set<std::string> known_;     // libraries whose calls are redirected
  std::string own_path_;
  uint64_t loads_ = 0;
  bool missing_ = false;
  bool again_ = false;    // all libraries are looked through again
  bool loading_ = false;  // one of them was being loaded by another thread
  bool open_ = false;
};

}  // namespace leadline::cpu
