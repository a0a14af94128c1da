// CPython 3.10: frames are PyFrameObject, public in the C headers.
#include <Python.h>

#if PY_VERSION_HEX < 0x030B0000
#include <frameobject.h>

#include <cstddef>

#include "stack/python_layout.h"

namespace leadline {

bool load_frame_layout(FrameLayout* out) noexcept {
  FrameLayout layout;
  layout.thread_frame = offsetof(PyThreadState, frame);
  layout.cframe = offsetof(PyThreadState, cframe);
  layout.root_cframe = offsetof(PyThreadState, root_cframe);
  layout.cframe_previous = offsetof(CFrame, previous);
  layout.previous = offsetof(PyFrameObject, f_back);
  layout.code = offsetof(PyFrameObject, f_code);
  layout.instruction = offsetof(PyFrameObject, f_lasti);
  layout.instruction_is_index = true;
  layout.locals = offsetof(PyFrameObject, f_localsplus);
  *out = layout;
  return true;
}

}  // namespace leadline
#endif
