// CPython 3.11: interpreter frames, described here field by field because the header is internal. The self-test
// compares a walk with sys._getframe before anything relies on it.
#include <Python.h>

#if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030C0000
#include <cstddef>

#include "stack/python_layout.h"

namespace leadline {
namespace {

struct Frame311 {
  void* function;
  void* globals;
  void* builtins;
  void* locals_dict;
  void* code;
  void* frame_object;
  void* previous;
  void* previous_instruction;
  int stack_top;
  bool is_entry;
  char owner;
  void* locals[1];
};

}  // namespace

bool load_frame_layout(FrameLayout* out) noexcept {
  FrameLayout layout;
  layout.thread_frame = offsetof(PyThreadState, cframe);
  layout.through_cframe = true;
  layout.cframe_frame = offsetof(_PyCFrame, current_frame);
  layout.cframe = offsetof(PyThreadState, cframe);
  layout.cframe_previous = offsetof(_PyCFrame, previous);
  layout.previous = offsetof(Frame311, previous);
  layout.code = offsetof(Frame311, code);
  layout.instruction = offsetof(Frame311, previous_instruction);
  layout.locals = offsetof(Frame311, locals);
  layout.entry = offsetof(Frame311, is_entry);
  layout.owner = -1;  // 3.11 has no frames without code on the chain
  layout.code_start = offsetof(PyCodeObject, co_code_adaptive);
  *out = layout;
  return true;
}

}  // namespace leadline
#endif
