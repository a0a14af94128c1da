#include "stack/python_anchors.h"

#include <Python.h>

#include "stack/call_anchors.h"
#include "stack/python_frames.h"

namespace leadline {
namespace {

class Open {
 public:
  Open() noexcept : anchors_(CallAnchors::mine()) {
    if (anchors_ != nullptr) at_ = anchors_->open(innermost_python_frame());
  }
  ~Open() {
    if (anchors_ != nullptr) anchors_->close(at_);
  }
  Open(const Open&) = delete;
  Open& operator=(const Open&) = delete;

 private:
  CallAnchors* anchors_;
  size_t at_ = 0;
};

ternaryfunc g_call = nullptr;  // what every class has whose __call__ is written in Python

PyObject* anchored_call(PyObject* object, PyObject* arguments, PyObject* named) {
  const Open open;
  return g_call(object, arguments, named);
}

PyMethodDef* g_method = nullptr;
PyCFunctionWithKeywords g_method_call = nullptr;

PyObject* anchored_method(PyObject* self, PyObject* arguments, PyObject* named) {
  const Open open;
  return g_method_call(self, arguments, named);
}

// The slot that a class gets for a __call__ of Python's, taken from one made for it.
ternaryfunc call_by_method() noexcept {
  PyObject* type = PyObject_CallFunction(reinterpret_cast<PyObject*>(&PyType_Type), "s(){sO}", "Called", "__call__",
                                         reinterpret_cast<PyObject*>(&PyType_Type));
  if (type == nullptr) {
    PyErr_Clear();
    return nullptr;
  }
  const ternaryfunc call = reinterpret_cast<PyTypeObject*>(type)->tp_call;
  Py_DECREF(type);
  return call;
}

}  // namespace

void anchor_calls_of(PyObject* object) noexcept {
  if (!PyType_Check(object)) return;
  auto* const type = reinterpret_cast<PyTypeObject*>(object);
  if (g_call == nullptr) g_call = call_by_method();
  if (g_call != nullptr && type->tp_call == g_call) type->tp_call = anchored_call;
}

void release_calls_of(PyObject* object) noexcept {
  if (!PyType_Check(object)) return;
  auto* const type = reinterpret_cast<PyTypeObject*>(object);
  if (type->tp_call == anchored_call) type->tp_call = g_call;
}

bool anchor_method(PyObject* descriptor) noexcept {
  if (g_method != nullptr || !Py_IS_TYPE(descriptor, &PyMethodDescr_Type)) return g_method != nullptr;
  PyMethodDef* const method = reinterpret_cast<PyMethodDescrObject*>(descriptor)->d_method;
  if (method->ml_flags != (METH_VARARGS | METH_KEYWORDS)) return false;
  g_method_call = reinterpret_cast<PyCFunctionWithKeywords>(reinterpret_cast<void*>(method->ml_meth));
  method->ml_meth = reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(anchored_method));
  g_method = method;
  return true;
}

void release_method() noexcept {
  if (g_method == nullptr) return;
  g_method->ml_meth = reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(g_method_call));
  g_method = nullptr;
}

}  // namespace leadline
