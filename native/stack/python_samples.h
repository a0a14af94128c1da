// Python frames for CPU samples: written down by a signal handler on the thread that it interrupts, named later by
// another thread.
//
// What is interrupted may be the interpreter in the middle of a call or a return, so the handler reads through the
// kernel and takes no frame for granted: the innermost one must have a code object that lives. Everybody outside of it
// is held by its own frame. Between the sample and its naming a code object may die; before it does, `before_code_dies`
// is called, and whoever has samples that are not named yet names them first.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/safe_pages.h"
#include "stack/python_source.h"

namespace leadline {

// The object that a frame calls a method of, of frames where that is an nn.Module being called.
struct SampledSelf {
  uintptr_t frame = 0;
  uintptr_t object = 0;
  uintptr_t type = 0;  // its class then; the object may die before the sample is booked
};

// One evaluation of the interpreter: `frames` Python frames, and an object that it keeps on its own C stack frame. The
// native frame in which that lies is this evaluation.
struct SampledRun {
  uintptr_t home = 0;
  uint64_t frames = 0;
};

// What a handler finds, in memory that it has brought along.
struct SampledStack {
  std::span<RawFrame> frames;  // leaf first
  std::span<SampledSelf> selves;
  std::span<SampledRun> runs;  // innermost first
  size_t frame_count = 0;      // one more than there is room for where the stack is deeper
  size_t self_count = 0;
  size_t run_count = 0;
  bool cut = false;  // the frames did not hang together, so there are none

  void clear() noexcept {
    frame_count = self_count = run_count = 0;
    cut = false;
  }
};

struct PythonSamples {
  // Once per process, before anything else: `live` reads the frames of running threads.
  bool (*begin)(const PythonSource& live) = nullptr;
  // Signal handler: the frames of the calling thread.
  void (*capture)(SafePages& memory, SampledStack& out) = nullptr;
  // Any thread: those of another one, by its number in the kernel, which must stand still meanwhile for them to be
  // right.
  void (*capture_of)(SafePages& memory, pid_t tid, SampledStack& out) = nullptr;
  // Whether this address is a lock that the interpreter keeps for itself, such as that for who may run.
  bool (*is_own_lock)(uintptr_t address) = nullptr;
  // Whether this is the code object of a frame that a sample may hold. Any thread.
  bool (*is_code)(uintptr_t code) = nullptr;
  // Called on the thread on which a code object dies, before it does.
  void (*before_code_dies)(void (*call)()) = nullptr;
  // Answers from the sample that was shown last instead of from the thread that asks; one thread at a time.
  const PythonSource* source = nullptr;
  void (*show)(std::span<const RawFrame> frames, std::span<const SampledSelf> selves) = nullptr;
};

extern const PythonSamples kPythonSamples;

}  // namespace leadline
