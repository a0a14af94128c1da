// Where this interpreter keeps what a stack is read from, for reading the stacks of another process that runs the same
// version. Conversions only.
#include <Python.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <cstddef>
#include <string>

#include "bindings/bindings.h"
#include "stack/python_layout.h"
#include "stack/python_self_test.h"

namespace nb = nanobind;

namespace leadline::bindings {
namespace {

// Offsets in bytes; None where this interpreter's frames are not understood. `code_mask` clears tag bits of pointers.
nb::object frame_layout() {
  FrameLayout layout;
  if (build_refusal() != nullptr || !load_frame_layout(&layout)) return nb::none();
  nb::dict found;
  found["thread_frame"] = layout.thread_frame;
  found["through_cframe"] = layout.through_cframe;
  found["cframe_frame"] = layout.cframe_frame;
  found["cframe"] = layout.cframe;
  found["cframe_previous"] = layout.cframe_previous;
  found["entry"] = layout.entry;
  found["previous"] = layout.previous;
  found["code"] = layout.code;
  found["code_mask"] = static_cast<uint64_t>(layout.code_mask);
  found["instruction"] = layout.instruction;
  found["instruction_is_index"] = layout.instruction_is_index;
  found["owner"] = layout.owner;
  found["shim_owner"] = layout.shim_owner;
  found["code_start"] = layout.code_start;
  found["code_filename"] = offsetof(PyCodeObject, co_filename);
#if PY_VERSION_HEX >= 0x030B0000
  found["code_name"] = offsetof(PyCodeObject, co_qualname);
#else
  found["code_name"] = offsetof(PyCodeObject, co_name);
#endif
  found["code_lines"] = offsetof(PyCodeObject, co_linetable);
  found["code_first_line"] = offsetof(PyCodeObject, co_firstlineno);
  found["bytes_size"] = offsetof(PyVarObject, ob_size);
  found["bytes_data"] = offsetof(PyBytesObject, ob_sval);
  found["text_length"] = offsetof(PyASCIIObject, length);
  found["text_state"] = offsetof(PyASCIIObject, state);
  found["text_ascii"] = sizeof(PyASCIIObject);
  found["text_wide"] = sizeof(PyCompactUnicodeObject);
  found["object_type"] = offsetof(PyObject, ob_type);
  found["type_name"] = offsetof(PyTypeObject, tp_name);
  return found;
}

// For tests: the sentence that refuses a layout with one field `by` bytes off; "" where it is accepted, None where this
// interpreter's layout has no such field.
nb::object refusal_of_shifted(const std::string& field, int by) {
  FrameLayout layout;
  if (!shifted_layout(field, by, &layout)) return nb::none();
  const char* const refusal = layout_refusal(layout);
  return nb::str(refusal == nullptr ? "" : refusal);
}

}  // namespace

void define_layout(nb::module_& m) {
  m.def("frame_layout", &frame_layout);
  m.def("refusal_of_shifted", &refusal_of_shifted);
}

}  // namespace leadline::bindings
