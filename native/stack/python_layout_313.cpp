// CPython 3.13 and later describe themselves: _PyRuntime opens with a table of offsets for debuggers. The table's own
// shape belongs to the minor version; 3.13 is written out here, later ones come with a header that holds nothing else.
#include <Python.h>

#if PY_VERSION_HEX >= 0x030D0000
#include <cstddef>
#include <cstring>

#include "stack/python_layout.h"

#if PY_VERSION_HEX >= 0x030E0000
#define Py_BUILD_CORE 1
#include <internal/pycore_debug_offsets.h>
#undef Py_BUILD_CORE
#endif

extern "C" char _PyRuntime[];

namespace leadline {
namespace {

#if PY_VERSION_HEX >= 0x030E0000
using Offsets = _Py_DebugOffsets;
// Stack references carry tags in their low bits.
constexpr uintptr_t kCodeMask = ~uintptr_t{7};
#else
struct Offsets {
  char cookie[8];
  uint64_t version;
  uint64_t free_threaded;
  uint64_t runtime_state[3];
  uint64_t interpreter_state[13];
  struct {
    uint64_t size, prev, next, interp, current_frame, thread_id, native_thread_id, datastack_chunk, status;
  } thread_state;
  struct {
    uint64_t size, previous, executable, instr_ptr, localsplus, owner;
  } interpreter_frame;
  struct {
    uint64_t size, filename, name, qualname, linetable, firstlineno, argcount, localsplusnames, localspluskinds,
        co_code_adaptive;
  } code_object;
};
constexpr uintptr_t kCodeMask = ~uintptr_t{0};
#endif

}  // namespace

bool load_frame_layout(FrameLayout* out) noexcept {
  Offsets offsets;
  std::memcpy(&offsets, _PyRuntime, sizeof offsets);
  if (std::memcmp(offsets.cookie, "xdebugpy", sizeof offsets.cookie) != 0) return false;
  if ((offsets.version >> 16) != (PY_VERSION_HEX >> 16)) return false;
  if (offsets.free_threaded != 0) return false;
  FrameLayout layout;
  layout.thread_frame = static_cast<uint32_t>(offsets.thread_state.current_frame);
  layout.previous = static_cast<uint32_t>(offsets.interpreter_frame.previous);
  layout.code = static_cast<uint32_t>(offsets.interpreter_frame.executable);
  layout.code_mask = kCodeMask;
  layout.instruction = static_cast<uint32_t>(offsets.interpreter_frame.instr_ptr);
  layout.locals = static_cast<uint32_t>(offsets.interpreter_frame.localsplus);
  layout.owner = static_cast<int32_t>(offsets.interpreter_frame.owner);
  layout.ends_in_mark = PY_VERSION_HEX >= 0x030F0000;
  layout.code_start = static_cast<uint32_t>(offsets.code_object.co_code_adaptive);
  *out = layout;
  return true;
}

}  // namespace leadline
#endif
