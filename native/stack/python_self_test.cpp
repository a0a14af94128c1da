#include "stack/python_self_test.h"

#include <Python.h>
#include <unistd.h>

#include <cstddef>
#include <utility>

#if PY_VERSION_HEX < 0x030B0000
#include <frameobject.h>
#endif

namespace leadline {
namespace {

// C enters the interpreter for `outermost` and, by map, for `innermost`; `middle` is called by Python. Each holds a
// known object in its first local.
const char kProgram[] =
    "def innermost(known, look):\n"
    "    return look()\n"
    "def middle(known, look):\n"
    "    return list(map(innermost, [known], [look]))\n"
    "def outermost(known, look):\n"
    "    return middle(known, look)\n";
// Calls of a class with an __init__ of Python's are made a short cut after the first few.
const char kMakes[] =
    "class Made:\n"
    "    def __init__(self, look):\n"
    "        look()\n"
    "def makes(look):\n"
    "    for _ in range(16):\n"
    "        Made(look)\n";
constexpr int kKnownFrames = 3;
constexpr int kMostFrames = 64;
constexpr size_t kMostCFrames = 1u << 16;
constexpr uintptr_t kWord = sizeof(void*);

// Reads through the kernel, by way of a pipe: a wrong address is an error, not a crash, and no container forbids it.
class SafeReader {
 public:
  SafeReader() noexcept {
    if (pipe(ends_) != 0) ends_[0] = ends_[1] = -1;
  }
  ~SafeReader() {
    if (ends_[0] >= 0) close(ends_[0]);
    if (ends_[1] >= 0) close(ends_[1]);
  }
  SafeReader(const SafeReader&) = delete;
  SafeReader& operator=(const SafeReader&) = delete;

  template <typename T>
  bool read(uintptr_t address, T* out) const noexcept {
    const auto size = static_cast<ssize_t>(sizeof(T));
    if (write(ends_[1], reinterpret_cast<const void*>(address), sizeof(T)) != size) return false;
    return ::read(ends_[0], out, sizeof(T)) == size;
  }

 private:
  int ends_[2] = {-1, -1};
};

class Trial {
 public:
  Trial(const FrameLayout& layout, PyObject* known) noexcept : layout_(layout), known_(known) {}

  // Before the known frames are entered.
  void begin() noexcept { c_frames_outside_ = c_frames(); }

  // In what the innermost of the known frames has called.
  void look() noexcept { good = c_frames_match() && frames_match(); }

  bool good = false;

 private:
  uintptr_t thread() const noexcept { return reinterpret_cast<uintptr_t>(PyGILState_GetThisThreadState()); }

  // How many evaluations have a C frame; 0 where that cannot be told.
  size_t c_frames() const noexcept {
    if (layout_.cframe < 0) return 0;
    uintptr_t at = 0;
    if (!memory_.read(thread() + static_cast<uint32_t>(layout_.cframe), &at)) return 0;
    uintptr_t last = 0;
    for (size_t count = 0; count < kMostCFrames; ++count) {
      if (at == 0) return layout_.root_cframe == 0 || last == thread() + layout_.root_cframe ? count : 0;
      last = at;
      if (at % kWord != 0 || !memory_.read(at + layout_.cframe_previous, &at)) return 0;
    }
    return 0;
  }

  bool c_frames_match() const noexcept {
    if (layout_.cframe < 0) return true;
    // Where a function of Python's is called by another, only 3.10 enters the interpreter anew.
    const size_t entered = layout_.entry < 0 ? 3 : 2;
    return c_frames_outside_ != 0 && c_frames() == c_frames_outside_ + entered;
  }

  bool innermost(uintptr_t* frame) const noexcept {
    if (thread() == 0 || !memory_.read(thread() + layout_.thread_frame, frame)) return false;
    return !layout_.through_cframe || memory_.read(*frame + layout_.cframe_frame, frame);
  }

  // Goes on to the next frame of a Python function; *marks: how many entries from C lie before it.
  bool skip_marks(uintptr_t* frame, int* marks) const noexcept {
    *marks = 0;
    while (*frame != 0 && layout_.owner >= 0) {
      uint8_t owner = 0;
      if (!memory_.read(*frame + static_cast<uint32_t>(layout_.owner), &owner)) return false;
      if (owner == layout_.shim_owner) {
        if (++*marks > 2) return false;
      } else if (!is_init_cleanup(*frame)) {
        return true;
      }
      if (!memory_.read(*frame + layout_.previous, frame)) return false;
    }
    return true;
  }

  bool is_init_cleanup(uintptr_t frame) const noexcept {
    uintptr_t code = 0;
    return layout_.init_cleanup != 0 && memory_.read(frame + layout_.code, &code) &&
           (code & layout_.code_mask) == layout_.init_cleanup;
  }

  bool entry_matches(uintptr_t frame, int depth, int marks) const noexcept {
    const bool from_c = depth == 1;  // the frame before this one, if it is a known one
    if (layout_.owner >= 0 && depth > 0 && depth < kKnownFrames && (marks != 0) != from_c) return false;
    if (layout_.entry < 0 || depth >= kKnownFrames) return true;
    uint8_t entry = 0;
    return memory_.read(frame + static_cast<uint32_t>(layout_.entry), &entry) && entry == (depth == 1 ? 0 : 1);
  }

  bool instruction_matches(uintptr_t frame, PyFrameObject* real, uintptr_t code) const noexcept {
    PyObject* const said = PyObject_GetAttrString(reinterpret_cast<PyObject*>(real), "f_lasti");
    const long offset = said == nullptr ? -1 : PyLong_AsLong(said);
    Py_XDECREF(said);
    PyErr_Clear();
    if (offset < 0) return true;  // nothing of it has run
    if (layout_.instruction_is_index) {
      int index = 0;
      return memory_.read(frame + layout_.instruction, &index) && index * 2L == offset;
    }
    uintptr_t instruction = 0;
    return memory_.read(frame + layout_.instruction, &instruction) &&
           instruction == code + layout_.code_start + static_cast<uintptr_t>(offset);
  }

  bool local_matches(uintptr_t frame, int depth) const noexcept {
    uintptr_t local = 0;
    return depth >= kKnownFrames || (memory_.read(frame + layout_.locals, &local) &&
                                     (local & layout_.code_mask) == reinterpret_cast<uintptr_t>(known_));
  }

  bool frame_matches(uintptr_t frame, PyFrameObject* real, int depth, int marks) const noexcept {
    PyCodeObject* const code = PyFrame_GetCode(real);
    const auto wanted = reinterpret_cast<uintptr_t>(code);
    Py_DECREF(code);
    uintptr_t found = 0;
    return memory_.read(frame + layout_.code, &found) && (found & layout_.code_mask) == wanted &&
           instruction_matches(frame, real, wanted) && local_matches(frame, depth) &&
           entry_matches(frame, depth, marks);
  }

  bool frames_match() const noexcept {
    uintptr_t frame = 0;
    int marks = 0;
    if (!innermost(&frame) || !skip_marks(&frame, &marks)) return false;
    PyFrameObject* real = PyEval_GetFrame();
    Py_XINCREF(real);
    int depth = 0;
    bool matches = true;
    for (; matches && real != nullptr && frame != 0 && depth < kMostFrames; ++depth) {
      matches = frame_matches(frame, real, depth, marks);
      PyFrameObject* const back = PyFrame_GetBack(real);
      Py_DECREF(real);
      real = back;
      matches = matches && memory_.read(frame + layout_.previous, &frame) && skip_marks(&frame, &marks);
    }
    // Both chains end together, unless the walk stopped at its depth limit.
    matches = matches && depth >= kKnownFrames && (depth == kMostFrames || (real == nullptr && frame == 0));
    Py_XDECREF(real);
    return matches;
  }

  const FrameLayout& layout_;
  PyObject* known_;
  SafeReader memory_;
  size_t c_frames_outside_ = 0;
};

// Looks from an __init__ for a frame between it and the function that called its class.
class Between {
 public:
  explicit Between(const FrameLayout& layout) noexcept : layout_(layout) {}

  void look() noexcept {
    uintptr_t frame = 0;
    uintptr_t between = 0;
    uintptr_t caller = 0;
    const auto thread = reinterpret_cast<uintptr_t>(PyGILState_GetThisThreadState());
    if (thread == 0 || !memory_.read(thread + layout_.thread_frame, &frame)) return;
    if (!memory_.read(frame + layout_.previous, &between) || !memory_.read(between + layout_.previous, &caller)) return;
    uintptr_t found = 0;
    uintptr_t outside = 0;
    if (!memory_.read(between + layout_.code, &found) || !memory_.read(caller + layout_.code, &outside)) return;
    const uintptr_t wanted = code_of_caller();
    found &= layout_.code_mask;
    if (found != wanted && (outside & layout_.code_mask) == wanted) code = found;
  }

  uintptr_t code = 0;

 private:
  static uintptr_t code_of_caller() noexcept {
    PyFrameObject* const here = PyEval_GetFrame();
    PyFrameObject* const back = here == nullptr ? nullptr : PyFrame_GetBack(here);
    if (back == nullptr) return 0;
    PyCodeObject* const code = PyFrame_GetCode(back);
    const auto found = reinterpret_cast<uintptr_t>(code);
    Py_DECREF(code);
    Py_DECREF(back);
    return found;
  }

  const FrameLayout& layout_;
  SafeReader memory_;
};

const char kName[] = "leadline.self_test";

template <typename Looking>
PyObject* look(PyObject* looking, PyObject*) {
  if (auto* const found = static_cast<Looking*>(PyCapsule_GetPointer(looking, kName)); found != nullptr) found->look();
  Py_RETURN_NONE;
}

PyMethodDef g_look = {"look", look<Trial>, METH_NOARGS, nullptr};
PyMethodDef g_look_between = {"look", look<Between>, METH_NOARGS, nullptr};

// A new reference to a function of a program, or nullptr with an exception.
PyObject* function_of(const char* program, const char* name) {
  PyObject* const names = PyDict_New();
  if (names == nullptr) return nullptr;
  PyObject* function = nullptr;
  PyObject* const code = Py_CompileString(program, "<leadline self-test>", Py_file_input);
  if (code != nullptr && PyDict_SetItemString(names, "__builtins__", PyEval_GetBuiltins()) == 0) {
    PyObject* const done = PyEval_EvalCode(code, names, names);
    function = done == nullptr ? nullptr : PyDict_GetItemString(names, name);
    Py_XINCREF(function);
    Py_XDECREF(done);
  }
  Py_XDECREF(code);
  Py_DECREF(names);
  return function;
}

// A new reference to a function of C's that looks, or nullptr with an exception.
PyObject* looks(PyMethodDef* method, void* looking) {
  PyObject* const capsule = PyCapsule_New(looking, kName, nullptr);
  PyObject* const function = capsule == nullptr ? nullptr : PyCFunction_New(method, capsule);
  Py_XDECREF(capsule);
  return function;
}

// Keeps the caller's exception, and takes away what goes wrong meanwhile.
class KeptException {
 public:
  KeptException() noexcept { PyErr_Fetch(&type_, &value_, &traceback_); }
  ~KeptException() { PyErr_Restore(type_, value_, traceback_); }
  KeptException(const KeptException&) = delete;
  KeptException& operator=(const KeptException&) = delete;

 private:
  PyObject *type_ = nullptr, *value_ = nullptr, *traceback_ = nullptr;
};

}  // namespace

const char* layout_refusal(const FrameLayout& layout) noexcept {
  static const char kFailed[] =
      "the self-test of Python frame reading failed on this interpreter, so Python lines are missing";
  const KeptException kept;
  PyObject* const known = PyList_New(0);
  PyObject* const outermost = function_of(kProgram, "outermost");
  Trial trial(layout, known);
  PyObject* const function = looks(&g_look, &trial);
  if (known != nullptr && outermost != nullptr && function != nullptr) {
    trial.begin();
    Py_XDECREF(PyObject_CallFunctionObjArgs(outermost, known, function, nullptr));
  }
  Py_XDECREF(function);
  Py_XDECREF(outermost);
  Py_XDECREF(known);
  return trial.good ? nullptr : kFailed;
}

uintptr_t init_cleanup_code(const FrameLayout& layout) noexcept {
  if (PY_VERSION_HEX < 0x030D0000) return 0;
  const KeptException kept;
  PyObject* const makes = function_of(kMakes, "makes");
  Between between(layout);
  PyObject* const function = looks(&g_look_between, &between);
  if (makes != nullptr && function != nullptr) Py_XDECREF(PyObject_CallOneArg(makes, function));
  Py_XDECREF(function);
  Py_XDECREF(makes);
  return between.code;
}

const char* build_refusal() noexcept {
#ifdef Py_GIL_DISABLED
  return "frames of free-threaded builds of Python are not read, so Python lines are missing; use the ordinary build "
         "of "
         "this version";
#endif
#if PY_VERSION_HEX >= 0x030B0000
  // Up to the first release candidate a layout may change from one release to the next.
  constexpr unsigned long kCandidate = 0xC;
  if (((Py_Version >> 4) & 0xF) < kCandidate && Py_Version != PY_VERSION_HEX) {
    return "this Python is a pre-release whose frames may lie elsewhere than in the one that Leadline was built for, "
           "so "
           "Python lines are missing; use a release, or build Leadline with this Python";
  }
#endif
  if (PySys_GetObject("gettotalrefcount") != nullptr) {
    return "frames of debug builds of Python are not read, so Python lines are missing; use the ordinary build of this "
           "version";
  }
  return nullptr;
}

bool shifted_layout(std::string_view field, int by, FrameLayout* out) noexcept {
  if (!load_frame_layout(out)) return false;
  out->init_cleanup = init_cleanup_code(*out);
  const struct {
    std::string_view name;
    uint32_t* place;
    bool is_there;
  } places[] = {
      {"thread_frame", &out->thread_frame, true},
      {"cframe_frame", &out->cframe_frame, out->through_cframe},
      {"root_cframe", &out->root_cframe, out->root_cframe != 0},
      {"cframe_previous", &out->cframe_previous, out->cframe >= 0},
      {"previous", &out->previous, true},
      {"code", &out->code, true},
      {"instruction", &out->instruction, true},
      {"locals", &out->locals, true},
      {"code_start", &out->code_start, !out->instruction_is_index},
  };
  for (const auto& [name, place, is_there] : places) {
    if (name != field || !is_there) continue;
    *place += static_cast<uint32_t>(by);
    return true;
  }
  for (const auto& [name, place] : {std::pair<std::string_view, int32_t*>{"cframe", &out->cframe},
                                    {"owner", &out->owner},
                                    {"entry", &out->entry}}) {
    if (name != field || *place < 0) continue;
    *place += by;
    return *place >= 0;
  }
  return false;
}

}  // namespace leadline
