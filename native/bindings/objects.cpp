// Living objects of a class, in one pass over what the garbage collector knows.
#include <nanobind/nanobind.h>

#include "bindings/bindings.h"

namespace nb = nanobind;

namespace leadline::bindings {
namespace {

// The list of all objects holds references for as long as it lives, also to a tuple that another thread is making,
// whose `tuple(...)` would then fail. So nothing between its making and its end gives the GIL away: no Python code, and
// no new object that would be collected for.
nb::list instances_of(nb::handle base) {
  if (!PyType_Check(base.ptr())) throw nb::type_error("instances_of takes a class");
  nb::list found;
  const nb::object get_objects = nb::module_::import_("gc").attr("get_objects");
  const nb::object all = get_objects();
  const Py_ssize_t count = PyList_GET_SIZE(all.ptr());
  auto* const wanted = reinterpret_cast<PyTypeObject*>(base.ptr());
  const PyTypeObject* last_type = nullptr;  // neighbours are often of one class
  bool last_is_wanted = false;
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* const object = PyList_GET_ITEM(all.ptr(), i);
    PyTypeObject* const type = Py_TYPE(object);
    if (type != last_type) {
      last_type = type;
      last_is_wanted = PyType_IsSubtype(type, wanted) != 0;
    }
    if (last_is_wanted) found.append(nb::handle(object));
  }
  return found;
}

}  // namespace

void define_objects(nb::module_& m) { m.def("instances_of", &instances_of, nb::arg("base")); }

}  // namespace leadline::bindings
