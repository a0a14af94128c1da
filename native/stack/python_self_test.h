// Whether a layout describes this interpreter: tried on a known call path, read so that a wrong offset cannot crash.
#pragma once

#include <string_view>

#include "stack/python_layout.h"

namespace leadline {

// nullptr where every field was seen to be right, else a sentence. Needs the GIL, runs a few lines of Python.
const char* layout_refusal(const FrameLayout& layout) noexcept;

// The code object of FrameLayout::init_cleanup, which has no exported name: found below a constructor that was called
// often. 0 where this interpreter has none, or does not make one now. Needs the GIL, runs a few lines of Python.
uintptr_t init_cleanup_code(const FrameLayout& layout) noexcept;

// A sentence where this build of Python is one of a kind that is not read: free-threaded, debug, pre-release.
const char* build_refusal() noexcept;

// For tests: this interpreter's layout with one field `by` bytes off. False where it has no such field.
bool shifted_layout(std::string_view field, int by, FrameLayout* out) noexcept;

}  // namespace leadline
