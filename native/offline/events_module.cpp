// leadline._events: bytes of a trace in, NumPy columns out, the work in events.cpp; conversions only.
#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "offline/arrays.h"
#include "offline/events.h"
#include "offline/groups.h"
#include "offline/nest.h"

namespace nb = nanobind;
using leadline::offline::array;
using leadline::offline::Column;
using leadline::offline::EventReader;
using leadline::offline::Interner;

namespace {

// A trace may hold bytes that are no UTF-8; they are shown as U+FFFD.
nb::object text(std::string_view bytes) {
  PyObject* made = PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "replace");
  if (made == nullptr) throw nb::python_error();
  return nb::steal(made);
}

nb::list texts(const Interner& interner) {
  nb::list found;
  for (size_t row = 0; row < interner.size(); ++row) found.append(text(interner.text(row)));
  return found;
}

std::string joined(const Interner& interner) {
  std::string found = "[";
  for (size_t row = 0; row < interner.size(); ++row) {
    found += row == 0 ? "{" : ",{";
    found += interner.text(row);
    found += '}';
  }
  return found += ']';
}

bool feed(EventReader& reader, const nb::bytes& data, bool last) {
  const std::string_view bytes(data.c_str(), data.size());
  nb::gil_scoped_release release;
  return reader.feed(bytes, last);
}

nb::dict events(EventReader& reader) {
  auto& from = reader.events;
  nb::dict found;
  found["ts"] = array(std::move(from.ts));
  found["dur"] = array(std::move(from.dur));
  found["category"] = array(std::move(from.category));
  found["name"] = array(std::move(from.name));
  found["thread"] = array(std::move(from.thread));
  found["track"] = array(std::move(from.track));
  found["device"] = array(std::move(from.device));
  found["stream"] = array(std::move(from.stream));
  found["correlation"] = array(std::move(from.correlation));
  found["sequence"] = array(std::move(from.sequence));
  found["forward_thread"] = array(std::move(from.forward_thread));
  found["bytes"] = array(std::move(from.bytes));
  found["detail"] = array(std::move(from.detail));
  return found;
}

// (events, microseconds that they lasted).
nb::tuple pair(const leadline::offline::Lost& lost) { return nb::make_tuple(lost.events, lost.dur); }

nb::tuple flows(EventReader& reader) {
  auto& from = reader.flows;
  return nb::make_tuple(array(std::move(from.id)), array(std::move(from.finish)), array(std::move(from.thread)),
                        array(std::move(from.ts)));
}

nb::tuple syncs(EventReader& reader) {
  auto& from = reader.syncs;
  return nb::make_tuple(array(std::move(from.correlation)), array(std::move(from.waiting)),
                        array(std::move(from.awaited)), array(std::move(from.record)));
}

nb::tuple borders(EventReader& reader) {
  auto& from = reader.borders;
  return nb::make_tuple(array(std::move(from.row)), array(std::move(from.track)), array(std::move(from.ts)));
}

nb::tuple memory(EventReader& reader) {
  auto& from = reader.memory;
  return nb::make_tuple(array(std::move(from.ts)), array(std::move(from.size)), array(std::move(from.device_type)));
}

// (above, end_ns, own_ns, depth) of every span.
nb::tuple nested(const Column<int32_t>& thread, const Column<int64_t>& start_ns, const Column<int64_t>& end_ns,
                 const Column<uint8_t>& timed) {
  const auto threads = leadline::offline::view(thread);
  int32_t most = -1;
  for (const int32_t one : threads) {
    if (one < 0) throw nb::value_error("A thread is a row of threads.");
    most = std::max(most, one);
  }
  if (start_ns.shape(0) != threads.size() || end_ns.shape(0) != threads.size() || timed.shape(0) != threads.size())
    throw nb::value_error("The columns of spans differ in length.");
  auto found = leadline::offline::nest(threads, leadline::offline::view(start_ns), leadline::offline::view(end_ns),
                                       leadline::offline::view(timed), static_cast<size_t>(most) + 1);
  return nb::make_tuple(array(std::move(found.above)), array(std::move(found.end_ns)), array(std::move(found.own_ns)),
                        array(std::move(found.depth)));
}

template <typename T>
int64_t largest(std::span<const T> column) {
  T most = -1;
  for (const T one : column) {
    if (one < 0) throw nb::value_error("A group is a row of groups.");
    most = std::max(most, one);
  }
  return static_cast<int64_t>(most);
}

void same_length(size_t one, size_t other) {
  if (one != other) throw nb::value_error("The columns differ in length.");
}

// (row of each group, group of each row).
nb::tuple distinct(const std::vector<Column<int64_t>>& columns) {
  std::vector<std::span<const int64_t>> views;
  for (const auto& column : columns) {
    views.push_back(leadline::offline::view(column));
    same_length(views.front().size(), views.back().size());
  }
  auto found = leadline::offline::distinct(views);
  return nb::make_tuple(array(std::move(found.first)), array(std::move(found.place)));
}

// (count, total, smallest, largest, squares) of every group.
nb::tuple sums(const Column<int32_t>& group, const Column<int64_t>& values) {
  const auto groups = leadline::offline::view(group);
  same_length(groups.size(), values.shape(0));
  auto found =
      leadline::offline::sums(groups, leadline::offline::view(values), static_cast<size_t>(largest(groups) + 1));
  return nb::make_tuple(array(std::move(found.count)), array(std::move(found.total)), array(std::move(found.smallest)),
                        array(std::move(found.largest)), array(std::move(found.squares)));
}

// (level of each row, rows whose link upwards is to be cut).
nb::tuple levels(const Column<int64_t>& above, int32_t deepest) {
  auto found = leadline::offline::levels(leadline::offline::view(above), deepest);
  return nb::make_tuple(array(std::move(found.level)), array(std::move(found.cut)));
}

nb::object nearest(const Column<int64_t>& above, const Column<uint8_t>& wanted) {
  same_length(above.shape(0), wanted.shape(0));
  return array(leadline::offline::nearest(leadline::offline::view(above), leadline::offline::view(wanted)));
}

// (process, tid, name) of every thread; the process is a number or a text.
nb::list threads(const EventReader& reader) {
  const auto& from = reader.threads;
  nb::list found;
  for (size_t row = 0; row < from.tid.size(); ++row) {
    const auto named = [&](int32_t name) { return text(reader.names.text(static_cast<size_t>(name))); };
    const nb::object process = from.text_process[row] < 0 ? nb::int_(from.process[row]) : named(from.text_process[row]);
    const nb::object name = from.name[row] < 0 ? nb::str("") : named(from.name[row]);
    found.append(nb::make_tuple(process, from.tid[row], name));
  }
  return found;
}

}  // namespace

NB_MODULE(_events, module) {
  module.doc() = "Compiled core of leadline.trace; use leadline.trace.kineto.";
  module.def("nest", &nested, nb::arg("thread"), nb::arg("start_ns"), nb::arg("end_ns"), nb::arg("timed"));
  module.def("distinct", &distinct, nb::arg("columns"));
  module.def("sums", &sums, nb::arg("group"), nb::arg("values"));
  module.def("levels", &levels, nb::arg("above"), nb::arg("deepest"));
  module.def("nearest", &nearest, nb::arg("above"), nb::arg("wanted"));
  nb::class_<EventReader>(module, "EventReader")
      .def(
          "__init__",
          [](EventReader* self, double low_us, double high_us, bool marks_only, bool python) {
            new (self) EventReader({low_us, high_us, marks_only, python});
          },
          nb::arg("low_us") = -std::numeric_limits<double>::infinity(),
          nb::arg("high_us") = std::numeric_limits<double>::infinity(), nb::arg("marks_only") = false,
          nb::arg("python") = false)
      .def("feed", &feed, nb::arg("data"), nb::arg("last"))
      .def("rest",
           [](const EventReader& reader) {
             const std::string_view rest = reader.rest();
             return nb::bytes(rest.data(), rest.size());
           })
      .def("events", &events)
      .def("flows", &flows)
      .def("syncs", &syncs)
      .def("borders", &borders)
      .def("memory", &memory)
      .def("threads", &threads)
      .def("unfamiliar",
           [](const EventReader& reader) {
             nb::list found;
             for (const auto& entry : reader.unfamiliar) {
               found.append(nb::make_tuple(text(entry.category), entry.taken, entry.left_out));
             }
             return found;
           })
      .def("names", [](const EventReader& reader) { return texts(reader.names); })
      .def("details", [](const EventReader& reader) { return text(joined(reader.details)); })
      .def_prop_ro("malformed", [](const EventReader& reader) { return pair(reader.malformed); })
      .def_prop_ro("asynchronous", [](const EventReader& reader) { return pair(reader.asynchronous); })
      .def_prop_ro("broken", [](const EventReader& reader) { return pair(reader.broken); })
      .def_ro("damaged", &EventReader::damaged)
      .def_ro("legacy", &EventReader::legacy);
}
