// leadline.book: what other sources have measured. Conversions only.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "base/device_table.h"
#include "base/schema_generated.h"
#include "bindings/bindings.h"
#include "leadline/monitor.h"
#include "session/session.h"

namespace nb = nanobind;

namespace leadline::bindings {
namespace {

using Frame = std::tuple<std::string, std::string, std::string, std::string, std::string, int32_t, int32_t, uint64_t>;
using Total = std::tuple<std::string, uint64_t, int64_t, int64_t, int64_t, double>;

// The number of a name; throws where it is none.
template <typename Names>
uint32_t number_of(const Names& names, const std::string& name, const char* what) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end())
    throw nb::value_error(("There is no " + std::string(what) + " named \"" + name + "\".").c_str());
  return static_cast<uint32_t>(found - names.begin());
}

// `below`: a place (all 64 bits: the upper ones are the session's mark), 0 for where the thread is, PLACE_THREAD for
// the thread. 0 when nobody listens.
uint64_t book(uint64_t below, const std::vector<Frame>& frames, const std::vector<Total>& totals,
              const std::string& device_type, int32_t device, int32_t stream) {
  std::vector<leadline_path_frame> path;
  for (const auto& [kind, name, module, file, detail, line, first_line, address] : frames) {
    path.push_back({static_cast<uint8_t>(number_of(kFrameKindNames, kind, "frame kind")), name.c_str(), module.c_str(),
                    file.c_str(), detail.c_str(), line, first_line, address});
  }
  std::vector<leadline_total> values;
  for (const auto& [metric, count, sum, min, max, sum_squares] : totals)
    values.push_back({number_of(kMetricKindNames, metric, "metric"), count, sum, min, max, sum_squares});
  const uint32_t type = number_of(kDeviceTypeNames, device_type, "device type");
  const leadline_context place = below == 0 ? leadline_monitor_context() : below;
  if (place == 0) return 0;
  leadline_booking booking = leadline_booking_of(place);
  booking.device_type = static_cast<int32_t>(type);
  booking.frames = path.data();
  booking.frame_count = static_cast<uint32_t>(path.size());
  booking.totals = values.data();
  booking.total_count = static_cast<uint32_t>(values.size());
  booking.device = device;
  booking.stream = stream;
  leadline_context booked = 0;
  if (leadline_monitor_book(&booking, &booked) == LEADLINE_ERROR_INVALID) {
    throw nb::value_error(
        "A booking makes no sense: a frame of the kind root, process or thread, a total whose sum does not lie between "
        "its smallest and its largest value times its count, or a place that this session has not given.");
  }
  return booked;
}

// Into the trace window: what a thread did at a place, as somebody else has timed it. False where nobody listens.
bool timed(uint64_t place, uint64_t thread, uint64_t correlation, const std::vector<int64_t>& begins_ns,
           const std::vector<int64_t>& durations_ns) {
  return Session::instance().timed({place, thread, correlation, begins_ns, durations_ns});
}

// A place of the thread of that number; 0 where nobody listens.
uint64_t thread_place(uint64_t tid, const std::string& name) { return Session::instance().place_of_thread(tid, name); }

// What is known of a device that bookings name.
void describe_device(const std::string& device_type, int32_t index, const std::string& name, int64_t memory_bytes,
                     const std::string& detail) {
  const uint32_t type = number_of(kDeviceTypeNames, device_type, "device type");
  Session::instance().describe_device({.index = index,
                                       .name = name,
                                       .uuid = {},
                                       .memory_bytes = memory_bytes,
                                       .detail = detail,
                                       .type = static_cast<DeviceType>(type)});
}

// Names in titles may be any bytes.
nb::object text(const std::string& value) {
  return nb::steal(PyUnicode_DecodeUTF8(value.data(), static_cast<Py_ssize_t>(value.size()), "replace"));
}

CompiledFrame compiled_frame(const Frame& given) {
  const auto& [kind, name, module, file, detail, line, first_line, address] = given;
  return {.kind = static_cast<FrameKind>(number_of(kFrameKindNames, kind, "frame kind")),
          .name = name,
          .module = module,
          .file = file,
          .detail = detail,
          .line = line};
}

// What stands in files for a program that a compiler's runtime calls by this number.
void explain_program(uint64_t program, const Frame& frame) {
  Session::instance().explain_program(program, compiled_frame(frame));
}

// And for one of its operations: the frames below the program of each operation that it was made from, and its share of
// the time in millionths.
void explain_operation(uint64_t program, const std::string& operation,
                       const std::vector<std::tuple<std::vector<Frame>, uint32_t>>& given) {
  CompiledParts parts;
  for (const auto& [frames, millionths] : given) {
    CompiledPart& part = parts.emplace_back();
    part.millionths = millionths;
    for (const Frame& frame : frames) part.frames.push_back(compiled_frame(frame));
  }
  Session::instance().explain_operation(program, operation, parts);
}

// (program, operation, module) that ran and nobody has explained; no operation: the program itself, which has a name.
nb::list unexplained_operations() {
  std::set<UnknownOperation> found;
  {
    const nb::gil_scoped_release no_gil;
    found = Session::instance().unexplained_operations();
  }
  nb::list unexplained;
  for (const UnknownOperation& each : found)
    unexplained.append(nb::make_tuple(each.program, text(each.operation), text(each.module)));
  return unexplained;
}

// {program: how often it ran below what called it}
nb::dict titled_runs() {
  nb::dict runs;
  for (const auto& [program, count] : Session::instance().titled_runs()) runs[nb::int_(program)] = count;
  return runs;
}

}  // namespace

void define_booking(nb::module_& m) {
  m.attr("PLACE_THREAD") = LEADLINE_PLACE_THREAD;
  m.def("place", &leadline_monitor_context);
  m.def("book", &book, nb::arg("below"), nb::arg("frames"), nb::arg("totals"), nb::arg("device_type"),
        nb::arg("device"), nb::arg("stream"));
  m.def("thread_place", &thread_place, nb::arg("tid"), nb::arg("name"));
  m.def("timed", &timed, nb::arg("place"), nb::arg("thread"), nb::arg("correlation"), nb::arg("begins_ns"),
        nb::arg("durations_ns"));
  m.def("explain_program", &explain_program, nb::arg("program"), nb::arg("frame"));
  m.def("explain_operation", &explain_operation, nb::arg("program"), nb::arg("operation"), nb::arg("parts"));
  m.def("titled_runs", &titled_runs);
  m.def("unexplained_operations", &unexplained_operations);
  m.def("describe_device", &describe_device, nb::arg("device_type"), nb::arg("index"), nb::arg("name"),
        nb::arg("memory_bytes"), nb::arg("detail"));
}

}  // namespace leadline::bindings
