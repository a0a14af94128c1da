// What the call path needs from an interpreter, as a table of functions: the rest of the core never sees Python.h,
// and the path is tested with frames drawn by hand.
//
// Every function is called on the thread whose frames it reads, with or without the GIL. They neither allocate nor take
// references: the thread's own chain of frames cannot change while the thread is inside a callback.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace leadline {

// One frame as the walk sees it. `code` and `instruction` identify the statement, `frame` the activation.
struct RawFrame {
  uintptr_t frame = 0;
  uintptr_t code = 0;
  uintptr_t instruction = 0;
};

// What a person reads of a frame; filled once per distinct (code, instruction).
struct FrameText {
  std::string name;  // qualified where the interpreter knows it
  std::string file;
  int32_t line = 0;
  int32_t first_line = 0;
};

struct PythonSource {
  // Innermost frame of the calling thread, 0 when it has none.
  uintptr_t (*top)() = nullptr;
  // Frames from `top` outwards, up to and including `stop` (0: to the root). Returns how many there are, which may be
  // more than `room`; `found` tells whether `stop` was met.
  size_t (*walk)(uintptr_t top, RawFrame* out, size_t room, uintptr_t stop, bool* found) = nullptr;
  // Object in the first local variable of a frame (self of a method), 0 when unset. Only when it is not the `expected`
  // one is it looked at.
  uintptr_t (*first_local)(uintptr_t frame, uintptr_t expected) = nullptr;
  // A word that changes when another code object takes the same address.
  uintptr_t (*fingerprint)(uintptr_t code) = nullptr;
  // How many code objects have died so far: while it stands still, no fingerprint can have changed. nullptr: unknown.
  const std::atomic<uint64_t>* codes_freed = nullptr;
  // Slow path: decode names and line.
  void (*describe)(const RawFrame& raw, FrameText* out) = nullptr;
  // Slow path: name of the class of an object, and of the local variable of `frame` that holds it (empty when none).
  void (*describe_object)(uintptr_t object, std::string* class_name) = nullptr;
  bool (*local_name_of)(uintptr_t frame, uintptr_t object, std::string* name) = nullptr;
  // Class of an object, as a number.
  uintptr_t (*type_of)(uintptr_t object) = nullptr;
};

}  // namespace leadline
