// RunHook: what JAX calls behind every run of a compiled program on its fast path, counting without Python.
//
// Promises: a run that is counted here takes no lock of ours, allocates nothing and calls no Python code. What Python
// must see goes through its own function, `slow`: a place or name that is new here, a run after the moment that Python
// has set (`quiet_until_s`), one for which somebody else's hook is in place (`state`), and the first in a forked child.
// Each run is counted on one of the two sides, by the one that returns from it.
//
// The name is told apart by its object, which is kept; two functions of the same name are added up by who reads.
//
// From a run to the next one of its place and name is a turn of the program's loop. Python says which turns are none
// because something of ours took part of them.
#include <Python.h>
#include <nanobind/nanobind.h>
#include <pthread.h>
#include <structmember.h>

#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <vector>

#include "base/clock.h"
#include "bindings/bindings.h"
#include "leadline/monitor.h"

namespace nb = nanobind;

namespace leadline::bindings {
namespace {

#ifdef Py_GIL_DISABLED
constexpr bool kOneAtATime = false;  // nothing would protect the counts
#else
constexpr bool kOneAtATime = true;
#endif

std::atomic<uint32_t> g_forks{0};
PyObject* g_name = nullptr;   // "__name__"
PyObject* g_value = nullptr;  // "value"

// Turns that ended, in nanoseconds.
struct Turns {
  uint64_t number = 0;
  int64_t sum = 0;
  int64_t shortest = INT64_MAX;
  int64_t longest = 0;
  double squares = 0;

  void add(int64_t ns) noexcept {
    ++number;
    sum += ns;
    shortest = ns < shortest ? ns : shortest;
    longest = ns > longest ? ns : longest;
    squares += static_cast<double>(ns) * static_cast<double>(ns);
  }
};

// Runs by place and name; found without a step that could fail.
class Counts {
 public:
  struct Entry {
    uint64_t place = 0;  // 0: free
    PyObject* name = nullptr;
    bool counted = false;
    uint64_t runs = 0;
    int64_t last_ns = 0;
    Turns turns;
  };

  Entry* find(uint64_t place, PyObject* name) noexcept {
    if (entries_.empty()) return nullptr;
    for (size_t at = start(place, name);; at = (at + 1) & (entries_.size() - 1)) {
      Entry& entry = entries_[at];
      if (entry.place == 0) return nullptr;
      if (entry.place == place && entry.name == name) return &entry;
    }
  }

  Entry* at(uint64_t place, PyObject* name) {
    if (Entry* known = find(place, name)) return known;
    if (2 * (used_ + 1) > entries_.size()) grow();
    ++used_;
    Entry made;
    made.place = place;
    made.name = Py_NewRef(name);
    return put(made);
  }

  std::vector<Entry>& entries() noexcept { return entries_; }

  void clear() {
    std::vector<Entry> gone;
    gone.swap(entries_);
    used_ = 0;
    for (const Entry& entry : gone) Py_XDECREF(entry.name);
  }

 private:
  size_t start(uint64_t place, PyObject* name) const noexcept {
    const uint64_t mixed = (place ^ reinterpret_cast<uintptr_t>(name)) * 0x9E3779B97F4A7C15U;
    return (mixed >> 32) & (entries_.size() - 1);
  }
  Entry* put(const Entry& entry) {
    size_t at = start(entry.place, entry.name);
    while (entries_[at].place != 0) at = (at + 1) & (entries_.size() - 1);
    entries_[at] = entry;
    return &entries_[at];
  }
  void grow() {
    std::vector<Entry> old(entries_.empty() ? 64 : 2 * entries_.size());  // a power of two
    old.swap(entries_);
    for (const Entry& entry : old) {
      if (entry.place != 0) put(entry);
    }
  }

  std::vector<Entry> entries_;
  size_t used_ = 0;
};

struct RunHook {
  PyObject_HEAD;
  vectorcallfunc call;
  PyObject* slow;
  PyObject* state;  // of JAX's configuration; its `value` is somebody else's hook, or None
  std::atomic<int64_t> quiet_until_ns;
  uint32_t forks;
  Counts counts;
};

// A new reference to an attribute, nullptr with no error set for one that cannot be had.
PyObject* attribute(PyObject* of, PyObject* name) {
  PyObject* found = PyObject_GetAttr(of, name);
  if (found == nullptr) PyErr_Clear();
  return found;
}

bool others_are_called(const RunHook& hook) {
  if (hook.state == Py_None) return false;
  PyObject* other = attribute(hook.state, g_value);
  const bool none = other == Py_None;
  Py_XDECREF(other);
  return !none;
}

// Whether the run of this function is counted now.
bool count(RunHook* hook, PyObject* function) {
  if (hook->forks != g_forks.load(std::memory_order_relaxed)) {
    hook->forks = g_forks.load(std::memory_order_relaxed);
    return false;
  }
  const int64_t now = now_ns();
  if (!kOneAtATime || now >= hook->quiet_until_ns.load(std::memory_order_relaxed) || others_are_called(*hook))
    return false;
  const leadline_context place = leadline_monitor_context();
  if (place == 0) return true;  // nobody listens
  PyObject* name = attribute(function, g_name);
  Counts::Entry* entry = name == nullptr ? nullptr : hook->counts.find(place, name);
  Py_XDECREF(name);
  if (entry == nullptr || !entry->counted) return false;
  ++entry->runs;
  if (entry->last_ns != 0) entry->turns.add(now - entry->last_ns);
  entry->last_ns = now;
  return true;
}

PyObject* call(PyObject* self, PyObject* const* arguments, size_t flags, PyObject* names) {
  auto* hook = reinterpret_cast<RunHook*>(self);
  if (PyVectorcall_NARGS(flags) == 4 && names == nullptr && count(hook, arguments[0])) Py_RETURN_NONE;
  if (hook->slow == nullptr) Py_RETURN_NONE;  // the collector has had it
  return PyObject_Vectorcall(hook->slow, arguments, flags, names);
}

PyObject* make(PyTypeObject* type, PyObject* arguments, PyObject*) {
  PyObject* slow = nullptr;
  if (!PyArg_ParseTuple(arguments, "O:RunHook", &slow)) return nullptr;
  PyObject* self = type->tp_alloc(type, 0);
  if (self == nullptr) return nullptr;
  auto* hook = reinterpret_cast<RunHook*>(self);
  hook->call = call;
  hook->slow = Py_NewRef(slow);
  hook->state = Py_NewRef(Py_None);
  hook->forks = g_forks.load(std::memory_order_relaxed);
  new (&hook->quiet_until_ns) std::atomic<int64_t>(0);
  new (&hook->counts) Counts();
  return self;
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  auto* hook = reinterpret_cast<RunHook*>(self);
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(hook->slow);
  Py_VISIT(hook->state);
  return 0;
}

int forget(PyObject* self) {
  auto* hook = reinterpret_cast<RunHook*>(self);
  Py_CLEAR(hook->slow);
  Py_XSETREF(hook->state, Py_NewRef(Py_None));
  return 0;
}

void end(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  auto* hook = reinterpret_cast<RunHook*>(self);
  PyObject_GC_UnTrack(self);
  hook->counts.clear();
  hook->counts.~Counts();
  Py_CLEAR(hook->slow);
  Py_CLEAR(hook->state);
  type->tp_free(self);
  Py_DECREF(type);
}

// add(place, name): runs of this name's object at this place are counted here from now on.
PyObject* add(PyObject* self, PyObject* arguments) {
  unsigned long long place = 0;
  PyObject* name = nullptr;
  if (!PyArg_ParseTuple(arguments, "KU:add", &place, &name)) return nullptr;
  if (place != 0) {
    try {
      reinterpret_cast<RunHook*>(self)->counts.at(place, name)->counted = true;
    } catch (const std::bad_alloc&) {
      return PyErr_NoMemory();
    }
  }
  Py_RETURN_NONE;
}

// turn(place, name, ends): a run of this name's object has begun at this place, and whether a turn ends with it.
PyObject* turn(PyObject* self, PyObject* arguments) {
  unsigned long long place = 0;
  PyObject* name = nullptr;
  int ends = 0;
  if (!PyArg_ParseTuple(arguments, "KUp:turn", &place, &name, &ends)) return nullptr;
  if (place == 0) Py_RETURN_NONE;
  try {
    Counts::Entry* entry = reinterpret_cast<RunHook*>(self)->counts.at(place, name);
    const int64_t now = now_ns();
    if (ends != 0 && entry->last_ns != 0) entry->turns.add(now - entry->last_ns);
    entry->last_ns = now;
  } catch (const std::bad_alloc&) {
    return PyErr_NoMemory();
  }
  Py_RETURN_NONE;
}

// The tuples that `make` gives of the entries, as a list; entries for which it gives nullptr without an error are left
// out.
template <typename Make>
PyObject* listed(PyObject* self, Make make) {
  PyObject* all = PyList_New(0);
  if (all == nullptr) return nullptr;
  auto& entries = reinterpret_cast<RunHook*>(self)->counts.entries();
  for (size_t at = 0; at < entries.size(); ++at) {  // making a tuple may run others
    if (entries[at].place == 0) continue;
    PyObject* one = make(&entries[at]);
    if (one == nullptr && PyErr_Occurred() == nullptr) continue;
    if (one == nullptr || PyList_Append(all, one) != 0) {
      Py_XDECREF(one);
      Py_DECREF(all);
      return nullptr;
    }
    Py_DECREF(one);
  }
  return all;
}

// turns(): [(name, number, sum, shortest, longest, sum of squares)] of those that ended since it was called last.
PyObject* turns(PyObject* self, PyObject*) {
  return listed(self, [](Counts::Entry* entry) -> PyObject* {
    const Turns ended = entry->turns;
    entry->turns = {};
    if (ended.number == 0) return nullptr;
    return Py_BuildValue("(OKLLLd)", entry->name, static_cast<unsigned long long>(ended.number),
                         static_cast<long long>(ended.sum), static_cast<long long>(ended.shortest),
                         static_cast<long long>(ended.longest), ended.squares);
  });
}

// counts(): [(place, name, runs)].
PyObject* counts(PyObject* self, PyObject*) {
  return listed(self, [](Counts::Entry* entry) -> PyObject* {
    if (entry->runs == 0) return nullptr;
    return Py_BuildValue("(KOK)", static_cast<unsigned long long>(entry->place), entry->name,
                         static_cast<unsigned long long>(entry->runs));
  });
}

PyObject* clear(PyObject* self, PyObject*) {
  reinterpret_cast<RunHook*>(self)->counts.clear();
  Py_RETURN_NONE;
}

PyObject* quiet_until(PyObject* self, void*) {
  const int64_t ns = reinterpret_cast<RunHook*>(self)->quiet_until_ns.load(std::memory_order_relaxed);
  return PyFloat_FromDouble(ns == INT64_MAX ? INFINITY : static_cast<double>(ns) / 1e9);
}

int set_quiet_until(PyObject* self, PyObject* value, void*) {
  const double seconds = value == nullptr ? 0 : PyFloat_AsDouble(value);
  if (PyErr_Occurred() != nullptr) return -1;
  const int64_t ns = seconds >= 9e9 ? INT64_MAX : static_cast<int64_t>(seconds * 1e9);
  reinterpret_cast<RunHook*>(self)->quiet_until_ns.store(ns, std::memory_order_relaxed);
  return 0;
}

PyObject* state(PyObject* self, void*) { return Py_NewRef(reinterpret_cast<RunHook*>(self)->state); }

int set_state(PyObject* self, PyObject* value, void*) {
  auto* hook = reinterpret_cast<RunHook*>(self);
  Py_XSETREF(hook->state, Py_NewRef(value == nullptr ? Py_None : value));
  return 0;
}

PyMethodDef kMethods[] = {
    {"add", add, METH_VARARGS, nullptr},    {"counts", counts, METH_NOARGS, nullptr},
    {"turn", turn, METH_VARARGS, nullptr},  {"turns", turns, METH_NOARGS, nullptr},
    {"clear", clear, METH_NOARGS, nullptr}, {nullptr, nullptr, 0, nullptr},
};
PyGetSetDef kProperties[] = {
    {"quiet_until_s", quiet_until, set_quiet_until, nullptr, nullptr},
    {"state", state, set_state, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"  // of a class with private members; the offset is right
PyMemberDef kMembers[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(RunHook, call), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};
#pragma GCC diagnostic pop
PyType_Slot kSlots[] = {
    {Py_tp_new, reinterpret_cast<void*>(make)},
    {Py_tp_dealloc, reinterpret_cast<void*>(end)},
    {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(forget)},
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_methods, kMethods},
    {Py_tp_getset, kProperties},
    {Py_tp_members, kMembers},
    {0, nullptr},
};
PyType_Spec kSpec = {"leadline._native.RunHook", sizeof(RunHook), 0,
                     Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL, kSlots};

}  // namespace

void define_jax_runs(nb::module_& m) {
  static std::once_flag once;
  std::call_once(once, [] {
    pthread_atfork(nullptr, nullptr, [] { g_forks.fetch_add(1, std::memory_order_relaxed); });
    g_name = PyUnicode_InternFromString("__name__");
    g_value = PyUnicode_InternFromString("value");
  });
  m.attr("RunHook") = nb::steal(PyType_FromSpec(&kSpec));
}

}  // namespace leadline::bindings
