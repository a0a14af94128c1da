// CPython 3.12: as 3.11 with the code object first, and shim frames where C calls the interpreter.
#include <Python.h>

#if PY_VERSION_HEX >= 0x030C0000 && PY_VERSION_HEX < 0x030D0000
#include <cstddef>

#include "stack/python_layout.h"

namespace leadline {
namespace {

struct Frame312 {
  void* code;
  void* previous;
  void* function;
  void* globals;
  void* builtins;
  void* locals_dict;
  void* frame_object;
  void* previous_instruction;
  int stack_top;
  uint16_t return_offset;
  char owner;
  void* locals[1];
};

}  // namespace

bool load_frame_layout(FrameLayout* out) noexcept {
  FrameLayout layout;
  layout.thread_frame = offsetof(PyThreadState, cframe);
  layout.through_cframe = true;
  layout.cframe_frame = offsetof(_PyCFrame, current_frame);
  layout.cframe_previous = offsetof(_PyCFrame, previous);
  layout.previous = offsetof(Frame312, previous);
  layout.code = offsetof(Frame312, code);
  layout.instruction = offsetof(Frame312, previous_instruction);
  layout.locals = offsetof(Frame312, locals);
  layout.owner = offsetof(Frame312, owner);
  layout.code_start = offsetof(PyCodeObject, co_code_adaptive);
  *out = layout;
  return true;
}

}  // namespace leadline
#endif
