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

// A frame that a call path shows, and what of it must be as it was for the path to be.
struct ShownFrame {
  RawFrame raw;
  uintptr_t self = 0;  // first local variable (the nn.Module of a module frame), 0 when it does not matter
  uintptr_t fingerprint = 0;
  uint32_t entries = 0;  // entries on the path once it is applied
  uint32_t module = 0;   // 1 + level of the innermost module's frame on the path, this one included; 0: none
  bool below_module = false;
  bool suspends = false;  // may be left and entered again
  uint32_t callers = 0;   // C called it: which of its callers are shown (native_callers.cpp); 0: Python did
  uint64_t anchor = 0;    // the call (CallAnchors) that keeps it, and all outside of it, as they are; 0: none is known
};

// The chain does not meet the shown frames one by one.
inline constexpr size_t kNotAligned = ~size_t{0};

// What a person reads of a frame; filled once per distinct (code, instruction).
struct FrameText {
  std::string name;  // qualified where the interpreter knows it
  std::string file;
  int32_t line = 0;
  int32_t first_line = 0;
};

struct PythonSamples;

struct PythonSource {
  // Innermost frame of the calling thread, 0 when it has none.
  uintptr_t (*top)() = nullptr;
  // Frames from `top` outwards, up to and including `stop` (0: to the root). Returns how many there are, which may be
  // more than `room`; `found` tells whether `stop` was met.
  size_t (*walk)(uintptr_t top, RawFrame* out, size_t room, uintptr_t stop, bool* found) = nullptr;
  // Compares the chain from `top` outwards with shown[from..count), innermost last, and writes nothing down. Returns
  // how many of the shown frames hold (`from` to `count`), or kNotAligned. Unless `inside`, the frame outside of
  // shown[from] must be `end` (0: there is none); `inside`: shown[from] itself ends the comparison.
  size_t (*matching)(uintptr_t top, const ShownFrame* shown, size_t from, size_t count, uintptr_t end,
                     bool inside) = nullptr;
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
  // Whether the object is no more, so that its address says nothing. nullptr: they all live.
  bool (*has_died)(uintptr_t object) = nullptr;
  // Whether a frame of this code may be left and entered again (generators, coroutines).
  bool (*suspends)(uintptr_t code) = nullptr;
  // Whether a frame of this code that is not on the chain lives on another stack of the thread, a greenlet's. nullptr:
  // that cannot be told.
  bool (*elsewhere)(uintptr_t frame, uintptr_t code) = nullptr;
  // An object on the native stack frame of the innermost evaluation of the interpreter; 0 where there is none.
  uintptr_t (*home)() = nullptr;
  // The same of every evaluation, the innermost first; returns how many there are, at most `room`. nullptr: unknown.
  size_t (*homes)(uintptr_t* out, size_t room) = nullptr;
  // Whether C called the interpreter for this frame: between it and the next one outwards lie native frames.
  bool (*entered_from_c)(uintptr_t frame) = nullptr;
  // How CPU samples read this interpreter (stack/python_samples.h); nullptr: they do not.
  const PythonSamples* samples = nullptr;
};

}  // namespace leadline
