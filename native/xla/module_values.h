// For the files of `leadline._xla`: what several of them hand to Python.
#pragma once

#include <nanobind/nanobind.h>

#include <string_view>

#include "xla/space.h"

namespace nb = nanobind;

namespace leadline::xla {

// Registers `GraphWindow`.
void add_graph_window(nb::module_& m);

// Names in programs may be any bytes.
inline nb::object text(std::string_view value) {
  return nb::steal(PyUnicode_DecodeUTF8(value.data(), static_cast<Py_ssize_t>(value.size()), "replace"));
}

inline std::string_view view(const nb::bytes& bytes) { return {bytes.c_str(), bytes.size()}; }

// [(name, {stat: text})]
inline nb::list planes_of(const Space& space) {
  nb::list planes;
  for (const Space::Plane& plane : space.planes()) {
    nb::dict stats;
    for (const auto& [name, value] : plane.stats) stats[text(name)] = text(value);
    planes.append(nb::make_tuple(text(plane.name), stats));
  }
  return planes;
}

// [(plane, id, name, device, stream)]
inline nb::list lines_of(const Space& space) {
  nb::list lines;
  for (const Space::Line& line : space.lines())
    lines.append(nb::make_tuple(line.plane, line.id, text(line.name), line.device, line.stream));
  return lines;
}

}  // namespace leadline::xla
