// Rows of events for tools, and paths to places. Conversions only.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/schema_generated.h"
#include "bindings/bindings.h"
#include "leadline/monitor.h"
#include "tools/event_tap.h"

namespace nb = nanobind;

namespace leadline::bindings {
namespace {

// Frames from the thread down, as (kind, name, file, line); empty for what is no place.
nb::list path_of(uint64_t place) {
  std::vector<leadline_frame> frames(128);
  size_t count = frames.size();
  leadline_status status = leadline_monitor_path(place, frames.data(), &count);
  if (status == LEADLINE_ERROR_FULL) {
    frames.resize(count);
    status = leadline_monitor_path(place, frames.data(), &count);
  }
  nb::list result;
  if (status != LEADLINE_OK) return result;
  for (size_t i = 0; i < count; ++i) {
    const leadline_frame& frame = frames[i];
    result.append(
        nb::make_tuple(to_string(static_cast<FrameKind>(frame.kind)).data(), frame.name, frame.file, frame.line));
  }
  return result;
}

// Rows as bytes; the caller makes an array of them.
nb::bytes drain(EventTap& tap, size_t room) {
  std::vector<EventRow> rows(std::min(room, tap.waiting()));
  const size_t count = tap.drain(rows.data(), rows.size());
  return nb::bytes(reinterpret_cast<const char*>(rows.data()), count * sizeof(EventRow));
}

}  // namespace

void define_tools(nb::module_& m) {
  m.def("published_place", &leadline_monitor_published);
  m.def("path_of", &path_of, nb::arg("place"));
  nb::class_<EventTap>(m, "EventTap")
      .def(nb::init<uint32_t, size_t>(), nb::arg("domains"), nb::arg("rows_per_thread"))
      .def("start", &EventTap::start)
      .def("stop", &EventTap::stop, nb::call_guard<nb::gil_scoped_release>())
      .def("wait", &EventTap::wait, nb::arg("timeout_ns"), nb::call_guard<nb::gil_scoped_release>())
      .def("drain", &drain, nb::arg("room"))
      .def("lost", &EventTap::lost)
      .def("name", &EventTap::name, nb::arg("number"));
}

}  // namespace leadline::bindings
