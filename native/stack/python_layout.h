// Where this interpreter keeps what a frame walk reads. Offsets are bytes.
#pragma once

#include <cstdint>

namespace leadline {

struct FrameLayout {
  uint32_t thread_frame = 0;    // in PyThreadState: the current frame, or the C frame that holds it
  bool through_cframe = false;  // 3.11 and 3.12 keep the current frame in a C frame
  uint32_t cframe_frame = 0;
  // In PyThreadState: the innermost C frame, an object on the C stack of each evaluation (3.10, 3.11); -1: evaluations
  // are told by marks between frames.
  int32_t cframe = -1;
  uint32_t root_cframe = 0;      // 3.10: in PyThreadState; what the first evaluation follows
  uint32_t cframe_previous = 0;  // in a C frame: that of the evaluation around it
  uint32_t previous = 0;
  uint32_t code = 0;
  uintptr_t code_mask = ~uintptr_t{0};  // clears the tag bits of a stack reference (3.14)
  uint32_t instruction = 0;
  bool instruction_is_index = false;  // 3.10: an index, not an address
  uint32_t locals = 0;
  int32_t owner = -1;         // -1: no such field
  uint8_t shim_owner = 3;     // frames that only mark an entry from C
  bool ends_in_mark = false;  // 3.15: the outermost frame of each thread is a mark that no evaluation has made
  int32_t entry = -1;         // 3.11: byte that says whether C called the interpreter for the frame; -1: no such field
  uint32_t code_start = 0;    // in the code object: the first instruction
  // 3.13: the code of the frame that a class called often puts below its __init__, no Python function; 0: none was seen
  uintptr_t init_cleanup = 0;
};

// False when this interpreter describes a layout that this build does not understand.
bool load_frame_layout(FrameLayout* out) noexcept;

}  // namespace leadline
