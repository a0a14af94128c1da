// Puts anchors (call_anchors.h) around calls of objects and of methods written in C, in places where Python cannot see
// it: the slot of a class that calls its objects, and the function behind a method.
#pragma once

typedef struct _object PyObject;

namespace leadline {

// All with the GIL. Objects of the class that are called from now on are anchors; only classes whose objects are called
// by way of a method of Python's are changed. The same class twice changes nothing.
void anchor_calls_of(PyObject* type) noexcept;
void release_calls_of(PyObject* type) noexcept;

// The method of a class written in C that takes positional and named arguments; one at a time. False where it is none.
bool anchor_method(PyObject* descriptor) noexcept;
void release_method() noexcept;

}  // namespace leadline
