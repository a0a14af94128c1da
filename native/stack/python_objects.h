// Objects of the interpreter that may have died: what their memory says of that. Reads without touching a count, on any
// thread, with or without the GIL.
#pragma once

#include <Python.h>

#include <cstddef>
#include <cstdint>

#include "base/safe_pages.h"

namespace leadline {

// The first two words of every object.
struct ObjectHead {
  uint64_t references;
  uintptr_t type;
};

inline bool lives(const ObjectHead& head, uintptr_t type) noexcept {
  if (head.type != type) return false;
  const auto count = static_cast<uint32_t>(head.references);
#if PY_VERSION_HEX >= 0x030E0000
  return count != 0;  // the other half holds flags
#else
  return count != 0 && head.references >> 32 == 0;  // freed memory holds a pointer here, or nothing
#endif
}

// Whether a class is there, and not what has taken its memory since: its own class is one whose instances are classes.
inline bool is_class(uintptr_t type) {
  constexpr size_t kFlags = offsetof(PyTypeObject, tp_flags);
  ObjectHead head{};
  decltype(PyTypeObject::tp_flags) flags = 0;
  decltype(PyTypeObject::tp_flags) flags_of_class = 0;
  return type % sizeof(void*) == 0 && read_safely(type, &head, sizeof head) && lives(head, head.type) &&
         read_safely(type + kFlags, &flags, sizeof flags) && (flags & Py_TPFLAGS_READY) != 0 &&
         read_safely(head.type + kFlags, &flags_of_class, sizeof flags_of_class) &&
         (flags_of_class & Py_TPFLAGS_TYPE_SUBCLASS) != 0;
}

}  // namespace leadline
