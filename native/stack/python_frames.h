// The PythonSource of the interpreter this module runs in.
#pragma once

#include "stack/python_layout.h"
#include "stack/python_source.h"

namespace leadline {

// nullptr with a sentence in *why when this interpreter's frames cannot be read: layout not understood, or the
// self-test (a walk compared with what sys._getframe says, read through the kernel so that a wrong offset cannot crash)
// failed. Needs the GIL.
const PythonSource* load_python_source(const char** why);

// What the source reads by, once it has been loaded.
const FrameLayout& python_layout() noexcept;

// Innermost frame of the calling thread; 0 where there is none, and before the above has been asked.
uintptr_t innermost_python_frame() noexcept;

}  // namespace leadline
