#include "stack/python_frames.h"

#include <Python.h>

#include <cstring>

#include "base/safe_pages.h"
#include "stack/python_layout.h"
#include "stack/python_samples.h"
#include "stack/python_self_test.h"

#if PY_VERSION_HEX < 0x030B0000
#include <frameobject.h>
#endif

namespace leadline {
namespace {

FrameLayout g_layout;  // set once by load_python_source, read-only afterwards
bool g_readable = false;

template <typename T>
T read_at(uintptr_t base, uint32_t offset) noexcept {
  T value;
  std::memcpy(&value, reinterpret_cast<const char*>(base) + offset, sizeof value);
  return value;
}

uintptr_t thread_state() noexcept { return reinterpret_cast<uintptr_t>(PyGILState_GetThisThreadState()); }

bool is_shim(uintptr_t frame) noexcept {
  return g_layout.owner >= 0 && read_at<uint8_t>(frame, static_cast<uint32_t>(g_layout.owner)) == g_layout.shim_owner;
}

// The mark of an evaluation, which lies on the C stack.
bool is_evaluation(uintptr_t frame) noexcept {
  return is_shim(frame) && !(g_layout.ends_in_mark && read_at<uintptr_t>(frame, g_layout.previous) == 0);
}

uintptr_t raw_top(uintptr_t thread) noexcept {
  uintptr_t holder = read_at<uintptr_t>(thread, g_layout.thread_frame);
  if (g_layout.through_cframe && holder != 0) holder = read_at<uintptr_t>(holder, g_layout.cframe_frame);
  return holder;
}

// A frame of no Python function: a mark, or what ends the call of a class.
bool is_inner(uintptr_t frame) noexcept {
  if (is_shim(frame)) return true;
  return g_layout.init_cleanup != 0 &&
         (read_at<uintptr_t>(frame, g_layout.code) & g_layout.code_mask) == g_layout.init_cleanup;
}

uintptr_t skip_shims(uintptr_t frame) noexcept {
  while (frame != 0 && is_inner(frame)) frame = read_at<uintptr_t>(frame, g_layout.previous);
  return frame;
}

[[gnu::hot]] uintptr_t top() {
  const uintptr_t thread = thread_state();
  return thread == 0 ? 0 : skip_shims(raw_top(thread));
}

uintptr_t home() {
  const uintptr_t thread = thread_state();
  if (thread == 0) return 0;
  if (g_layout.cframe >= 0) return read_at<uintptr_t>(thread, static_cast<uint32_t>(g_layout.cframe));
  for (uintptr_t frame = raw_top(thread); frame != 0; frame = read_at<uintptr_t>(frame, g_layout.previous)) {
    if (is_evaluation(frame)) return frame;
  }
  return 0;
}

size_t homes(uintptr_t* out, size_t room) {
  const uintptr_t thread = thread_state();
  if (thread == 0) return 0;
  const bool by_cframe = g_layout.cframe >= 0;
  uintptr_t at = by_cframe ? read_at<uintptr_t>(thread, static_cast<uint32_t>(g_layout.cframe)) : raw_top(thread);
  size_t count = 0;
  for (; at != 0 && count < room;
       at = read_at<uintptr_t>(at, by_cframe ? g_layout.cframe_previous : g_layout.previous)) {
    if (by_cframe || is_evaluation(at)) out[count++] = at;
  }
  return count;
}

RawFrame read_frame(uintptr_t frame) noexcept {
  RawFrame raw;
  raw.frame = frame;
  raw.code = read_at<uintptr_t>(frame, g_layout.code) & g_layout.code_mask;
  raw.instruction = g_layout.instruction_is_index
                        ? static_cast<uintptr_t>(static_cast<intptr_t>(read_at<int>(frame, g_layout.instruction)))
                        : read_at<uintptr_t>(frame, g_layout.instruction);
  return raw;
}

size_t walk(uintptr_t top, RawFrame* out, size_t room, uintptr_t stop, bool* found) {
  size_t count = 0;
  *found = stop == 0;
  for (uintptr_t frame = top; frame != 0; frame = skip_shims(read_at<uintptr_t>(frame, g_layout.previous))) {
    if (count < room) out[count] = read_frame(frame);
    ++count;
    if (frame == stop) {
      *found = true;
      break;
    }
  }
  return count;
}

bool same_statement(uintptr_t frame, const ShownFrame& shown) noexcept {
  const RawFrame raw = read_frame(frame);
  return raw.code == shown.raw.code && raw.instruction == shown.raw.instruction;
}

uintptr_t first_local(uintptr_t frame, uintptr_t expected);

// The comparison knows where the next frame ought to be, so the processor need not wait for one frame to find the next.
[[gnu::hot]] size_t matching(uintptr_t top, const ShownFrame* shown, size_t from, size_t count, uintptr_t end,
                             bool inside) {
  constexpr size_t kFarthest = 16;  // from the innermost frame to the first that is shown
  uintptr_t frame = top;
  size_t level = 0;
  for (size_t steps = 0; level == 0; ++steps) {
    if (frame == 0 || steps == kFarthest) return kNotAligned;
    const size_t lowest = count > from + kFarthest ? count - kFarthest : from;
    for (size_t at = count; at > lowest; --at) {
      if (shown[at - 1].raw.frame != frame) continue;
      level = at;
      break;
    }
    if (level == 0) frame = skip_shims(read_at<uintptr_t>(frame, g_layout.previous));
  }
  size_t kept = level;
  for (; level > from; --level) {
    const ShownFrame& known = shown[level - 1];
    if (known.raw.frame != frame) return kNotAligned;
    const bool same = same_statement(known.raw.frame, known) &&
                      (known.self == 0 || first_local(known.raw.frame, known.self) == known.self);
    if (!same) kept = level - 1;
    if (inside && level == from + 1) return kept;
    frame = skip_shims(read_at<uintptr_t>(known.raw.frame, g_layout.previous));
  }
  return inside || frame != end ? kNotAligned : kept;
}

uintptr_t first_local(uintptr_t frame, uintptr_t expected) {
  uintptr_t object = read_at<uintptr_t>(frame, g_layout.locals) & g_layout.code_mask;
  if (object != 0 && object != expected && Py_TYPE(reinterpret_cast<PyObject*>(object)) == &PyCell_Type) {
    object = reinterpret_cast<uintptr_t>(reinterpret_cast<PyCellObject*>(object)->ob_ref);
  }
  return object;
}

uintptr_t fingerprint(uintptr_t address) {
  const auto* code = reinterpret_cast<const PyCodeObject*>(address);
#if PY_VERSION_HEX >= 0x030C0000
  // Given out once per code object and never again.
  return (static_cast<uintptr_t>(code->co_version) << 32) ^ static_cast<uintptr_t>(code->co_firstlineno);
#else
  return reinterpret_cast<uintptr_t>(code->co_filename) ^ (reinterpret_cast<uintptr_t>(code->co_linetable) << 1) ^
         (static_cast<uintptr_t>(code->co_firstlineno) << 40);
#endif
}

void append_utf8(std::string* out, Py_UCS4 c) {
  if (c < 0x80) {
    out->push_back(static_cast<char>(c));
  } else if (c < 0x800) {
    out->push_back(static_cast<char>(0xC0 | (c >> 6)));
    out->push_back(static_cast<char>(0x80 | (c & 0x3F)));
  } else if (c < 0x10000) {
    const bool surrogate = c >= 0xD800 && c <= 0xDFFF;  // undecodable file names carry lone surrogates
    if (surrogate) c = 0xFFFD;
    out->push_back(static_cast<char>(0xE0 | (c >> 12)));
    out->push_back(static_cast<char>(0x80 | ((c >> 6) & 0x3F)));
    out->push_back(static_cast<char>(0x80 | (c & 0x3F)));
  } else {
    out->push_back(static_cast<char>(0xF0 | (c >> 18)));
    out->push_back(static_cast<char>(0x80 | ((c >> 12) & 0x3F)));
    out->push_back(static_cast<char>(0x80 | ((c >> 6) & 0x3F)));
    out->push_back(static_cast<char>(0x80 | (c & 0x3F)));
  }
}

// PyUnicode_AsUTF8 would cache, which allocates Python memory; here the GIL may not be held.
void assign_text(std::string* out, PyObject* text) {
  out->clear();
  if (text == nullptr || !PyUnicode_Check(text)) return;
  const int kind = static_cast<int>(PyUnicode_KIND(text));
  const void* data = PyUnicode_DATA(text);
  const Py_ssize_t length = PyUnicode_GET_LENGTH(text);
  for (Py_ssize_t i = 0; i < length; ++i) append_utf8(out, PyUnicode_READ(kind, data, i));
}

void describe(const RawFrame& raw, FrameText* out) {
  auto* code = reinterpret_cast<PyCodeObject*>(raw.code);
#if PY_VERSION_HEX >= 0x030B0000
  assign_text(&out->name, code->co_qualname);
  const uintptr_t start = raw.code + g_layout.code_start;
  const int offset = raw.instruction < start ? -1 : static_cast<int>(raw.instruction - start);
#else
  assign_text(&out->name, code->co_name);
  const int offset = static_cast<int>(static_cast<intptr_t>(raw.instruction)) * static_cast<int>(sizeof(_Py_CODEUNIT));
#endif
  assign_text(&out->file, code->co_filename);
  out->first_line = code->co_firstlineno;
  // A frame that has not run its first instruction stands on its own first line.
  const int line = PyCode_Addr2Line(code, offset);
  out->line = line > 0 ? line : code->co_firstlineno;
}

void describe_object(uintptr_t object, std::string* class_name) {
  const char* name = Py_TYPE(reinterpret_cast<PyObject*>(object))->tp_name;
  const char* dot = std::strrchr(name, '.');
  *class_name = dot == nullptr ? name : dot + 1;
}

uintptr_t type_of(uintptr_t object) {
  return reinterpret_cast<uintptr_t>(Py_TYPE(reinterpret_cast<PyObject*>(object)));
}

bool local_name_of(uintptr_t frame, uintptr_t object, std::string* name) {
  const RawFrame raw = read_frame(frame);
  auto* code = reinterpret_cast<PyCodeObject*>(raw.code);
#if PY_VERSION_HEX >= 0x030B0000
  PyObject* const lists[] = {code->co_localsplusnames};
#else  // in a frame they lie in this order, too
  PyObject* const lists[] = {code->co_varnames, code->co_cellvars, code->co_freevars};
#endif
  uint32_t place = g_layout.locals;
  for (PyObject* names : lists) {
    if (names == nullptr || !PyTuple_Check(names)) return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); ++i, place += sizeof(void*)) {
      uintptr_t value = read_at<uintptr_t>(frame, place) & g_layout.code_mask;
      if (value != 0 && value != object && Py_TYPE(reinterpret_cast<PyObject*>(value)) == &PyCell_Type) {
        value = reinterpret_cast<uintptr_t>(reinterpret_cast<PyCellObject*>(value)->ob_ref);
      }
      if (value != object) continue;
      assign_text(name, PyTuple_GET_ITEM(names, i));
      return true;
    }
  }
  return false;
}

bool suspends(uintptr_t address) {
  const auto* code = reinterpret_cast<const PyCodeObject*>(address);
  return (code->co_flags & (CO_GENERATOR | CO_COROUTINE | CO_ITERABLE_COROUTINE | CO_ASYNC_GENERATOR)) != 0;
}

#if PY_VERSION_HEX >= 0x030B0000
// Frames lie in chunks, of which each greenlet has its own. One that has returned lies in a chunk of this stack, or in
// one that has been given back and can no more be read.
bool elsewhere(uintptr_t frame, uintptr_t code) {
  const auto* const thread = reinterpret_cast<const PyThreadState*>(thread_state());
  if (thread == nullptr) return false;
  for (const _PyStackChunk* chunk = thread->datastack_chunk; chunk != nullptr; chunk = chunk->previous) {
    const auto begin = reinterpret_cast<uintptr_t>(chunk);
    if (frame >= begin && frame < begin + chunk->size) return false;
  }
  uintptr_t found = 0;
  return read_safely(frame + g_layout.code, &found, sizeof found) && (found & g_layout.code_mask) == code;
}
#else
// A frame keeps its state when it has returned, for as long as nothing else lies in its memory.
bool elsewhere(uintptr_t frame, uintptr_t code) {
  uintptr_t type = 0;
  uintptr_t found = 0;
  PyFrameState state = FRAME_RETURNED;
  return read_safely(frame + offsetof(PyObject, ob_type), &type, sizeof type) &&
         type == reinterpret_cast<uintptr_t>(&PyFrame_Type) &&
         read_safely(frame + g_layout.code, &found, sizeof found) && found == code &&
         read_safely(frame + offsetof(PyFrameObject, f_state), &state, sizeof state) && state == FRAME_EXECUTING;
}
#endif

bool entered_from_c(uintptr_t frame) {
  if (g_layout.entry >= 0) return read_at<uint8_t>(frame, static_cast<uint32_t>(g_layout.entry)) != 0;
  const uintptr_t previous = read_at<uintptr_t>(frame, g_layout.previous);
  // Without marks between frames every call goes through C.
  return g_layout.owner < 0 || previous == 0 || is_shim(previous);
}

// Code objects are freed by their type's destructor, which is ours from the first profile on: it counts and goes on to
// the interpreter's. It is never taken out again, for another may have been put before it since.
std::atomic<uint64_t> g_codes_freed{0};
destructor g_free_code = nullptr;

void free_code(PyObject* code) {
  g_codes_freed.fetch_add(1, std::memory_order_release);
  g_free_code(code);
}

void count_freed_codes() noexcept {
  if (g_free_code != nullptr) return;
  g_free_code = PyCode_Type.tp_dealloc;
  PyCode_Type.tp_dealloc = free_code;
}

constexpr PythonSource kSource = {
    .top = top,
    .walk = walk,
    .matching = matching,
    .first_local = first_local,
    .fingerprint = fingerprint,
    .codes_freed = &g_codes_freed,
    .describe = describe,
    .describe_object = describe_object,
    .local_name_of = local_name_of,
    .type_of = type_of,
    .suspends = suspends,
    .elsewhere = elsewhere,
    .home = home,
    .homes = homes,
    .entered_from_c = entered_from_c,
    .samples = &kPythonSamples,
};

}  // namespace

const PythonSource* load_python_source(const char** why) {
  *why = build_refusal();
  if (*why == nullptr && !load_frame_layout(&g_layout)) {
    *why =
        "this build of Python describes its frames in a way that Leadline does not know, so Python lines are missing";
  }
  if (*why == nullptr) {
    g_layout.init_cleanup = init_cleanup_code(g_layout);
    *why = layout_refusal(g_layout);
  }
  if (*why != nullptr) return nullptr;
  count_freed_codes();
  g_readable = true;
  return &kSource;
}

const FrameLayout& python_layout() noexcept { return g_layout; }

uintptr_t innermost_python_frame() noexcept { return g_readable ? top() : 0; }

}  // namespace leadline
