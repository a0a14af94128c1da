// leadline._cubin: bytes of a cubin in, places of its instructions out, the work in cubin.cpp; conversions only.
#include <nanobind/nanobind.h>

#include <string>
#include <utility>
#include <vector>

#include "offline/cubin.h"

namespace nb = nanobind;
using leadline::offline::CodePlace;
using leadline::offline::Cubin;

namespace {

// Names in a file may be anything; what is no UTF-8 is shown as U+FFFD.
nb::object text(std::string_view bytes) {
  PyObject* made = PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "replace");
  if (made == nullptr) throw nb::python_error();
  return nb::steal(made);
}

Cubin opened(const nb::bytes& data) {
  std::string error;
  std::optional<Cubin> made = Cubin::read(std::string(data.c_str(), data.size()), &error);
  if (!made) throw nb::value_error(error.c_str());
  return std::move(*made);
}

std::string_view given(const nb::str& name) { return {name.c_str()}; }

// (name, size, whether it is a kernel) of every function.
nb::list functions(const Cubin& cubin) {
  nb::list found;
  for (const Cubin::Function& one : cubin.functions()) {
    found.append(nb::make_tuple(text(one.name), one.size, one.kernel));
  }
  return found;
}

// (function, file, line), the innermost first.
nb::list at(const Cubin& cubin, const nb::str& function, uint64_t offset) {
  nb::list found;
  for (const CodePlace& place : cubin.at(given(function), offset)) {
    found.append(nb::make_tuple(text(place.function), text(place.file), place.line));
  }
  return found;
}

}  // namespace

NB_MODULE(_cubin, m) {
  nb::class_<Cubin>(m, "Cubin")
      .def("functions", &functions)
      .def("at", &at, nb::arg("function"), nb::arg("offset"))
      .def("kernel_of", [](const Cubin& cubin, const nb::str& name) { return text(cubin.kernel_of(given(name))); })
      .def_prop_ro("has_lines", &Cubin::has_lines);
  m.def("read", &opened, nb::arg("data"));
}
