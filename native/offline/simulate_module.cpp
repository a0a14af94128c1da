// leadline._simulate: NumPy arrays in, NumPy arrays out, the work in simulate.cpp; conversions only.
#include <nanobind/nanobind.h>

#include <stdexcept>
#include <utility>

#include "offline/arrays.h"
#include "offline/flatten.h"
#include "offline/nesting.h"
#include "offline/simulate.h"

namespace nb = nanobind;
using leadline::offline::array;
using leadline::offline::Column;
using leadline::offline::Program;
using leadline::offline::Run;
using leadline::offline::view;

namespace {

nb::tuple run(Column<int32_t> lane, Column<int64_t> duration_ns, Column<int64_t> gap_ns, Column<int64_t> earliest_ns,
              Column<int32_t> group, Column<double> priority, Column<int32_t> next_on_lane, Column<int32_t> launches,
              Column<int32_t> pending, Column<int32_t> initial, Column<uint8_t> discipline, Column<int32_t> edge_offset,
              Column<int32_t> edge_dst, Column<uint8_t> edge_type, Column<int64_t> edge_latency_ns,
              Column<int32_t> wait_offset, Column<int32_t> wait_lane, Column<int32_t> group_size, bool by_priority) {
  const Program program{
      view(lane),        view(duration_ns),  view(gap_ns),     view(earliest_ns), view(group),
      view(priority),    view(next_on_lane), view(launches),   view(pending),     view(initial),
      view(discipline),  view(edge_offset),  view(edge_dst),   view(edge_type),   view(edge_latency_ns),
      view(wait_offset), view(wait_lane),    view(group_size),
  };
  if (const char* reason = leadline::offline::problem(program)) throw std::invalid_argument(reason);
  Run result;
  {
    nb::gil_scoped_release release;
    result = leadline::offline::run(program, by_priority);
  }
  return nb::make_tuple(array(std::move(result.start_ns)), array(std::move(result.end_ns)),
                        array(std::move(result.slack_ns)), array(std::move(result.cause)),
                        array(std::move(result.end_cause)), array(std::move(result.from_start)), result.finished);
}

nb::tuple flatten(Column<uint8_t> alive, Column<int32_t> lane, Column<double> order, Column<uint8_t> discipline,
                  Column<int32_t> edge_src, Column<int32_t> edge_dst, Column<uint8_t> edge_type,
                  Column<int64_t> edge_latency_ns, Column<int32_t> wait_task, Column<int32_t> wait_lane) {
  const leadline::offline::GraphTables tables{
      view(alive),    view(lane),      view(order),           view(discipline), view(edge_src),
      view(edge_dst), view(edge_type), view(edge_latency_ns), view(wait_task),  view(wait_lane),
  };
  leadline::offline::Flattened found;
  {
    nb::gil_scoped_release release;
    const char* const reason = leadline::offline::problem(tables);
    if (reason != nullptr) throw std::invalid_argument(reason);
    found = leadline::offline::flatten(tables);
  }
  return nb::make_tuple(
      array(std::move(found.ids)), array(std::move(found.next_on_lane)), array(std::move(found.launches)),
      array(std::move(found.pending)), array(std::move(found.initial)), array(std::move(found.edge_offset)),
      array(std::move(found.edge_dst)), array(std::move(found.edge_type)), array(std::move(found.edge_latency_ns)),
      array(std::move(found.wait_offset)), array(std::move(found.wait_lane)));
}

nb::tuple nested(Column<int64_t> start, Column<int64_t> end) {
  auto found = leadline::offline::nesting(view(start), view(end));
  return nb::make_tuple(array(std::move(found.parent)), array(std::move(found.root)));
}

}  // namespace

NB_MODULE(_simulate, module) {
  module.doc() = "Compiled core of leadline.whatif; use leadline.whatif.simulate.";
  module.def("run", &run, "Simulate a program; see python/leadline/whatif/program.py for the columns.", nb::arg("lane"),
             nb::arg("duration_ns"), nb::arg("gap_ns"), nb::arg("earliest_ns"), nb::arg("group"), nb::arg("priority"),
             nb::arg("next_on_lane"), nb::arg("launches"), nb::arg("pending"), nb::arg("initial"),
             nb::arg("discipline"), nb::arg("edge_offset"), nb::arg("edge_dst"), nb::arg("edge_type"),
             nb::arg("edge_latency_ns"), nb::arg("wait_offset"), nb::arg("wait_lane"), nb::arg("group_size"),
             nb::arg("by_priority"));
  module.def("flatten", &flatten, "The shape of a program out of a graph's tables; see program.py.", nb::arg("alive"),
             nb::arg("lane"), nb::arg("order"), nb::arg("discipline"), nb::arg("edge_src"), nb::arg("edge_dst"),
             nb::arg("edge_type"), nb::arg("edge_latency_ns"), nb::arg("wait_task"), nb::arg("wait_lane"));
  module.def("nesting", &nested, "Row of the enclosing span (-1 for none) and of the outermost one.", nb::arg("start"),
             nb::arg("end"));
}
