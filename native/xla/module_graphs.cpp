// `leadline._xla.GraphWindow`; conversions only.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "xla/graph_memory.h"
#include "xla/graph_window.h"
#include "xla/module_values.h"

namespace leadline::xla {
namespace {

// Count, sum, smallest and largest; None where nothing was counted.
nb::object values(const Values& of) {
  if (of.count == 0) return nb::none();
  return nb::make_tuple(of.count, of.sum, of.min, of.max);
}

// Count, whole, own, shortest and longest; None where nothing ran.
nb::object times(const Times& of) {
  if (of.whole.count == 0) return nb::none();
  return nb::make_tuple(of.whole.count, of.whole.sum, of.own_ps, of.whole.min, of.whole.max);
}

// One window of TensorFlow's profiler. Numbers of steps are TensorFlow's, times in picoseconds; those of nothing that
// a step or node has are `no_step` and an empty text.
class Graphs {
 public:
  Graphs(nb::bytes bytes, bool keep) : bytes_(std::move(bytes)) {
    const nb::gil_scoped_release no_gil;
    space_ = std::make_unique<Space>(view(bytes_), graph_window_wanted(), &problem_);
    window_ = std::make_unique<GraphWindow>(*space_, keep);
  }

  const Space& space() const { return *space_; }
  const std::string& problem() const { return problem_; }

  // [(function, steps, [(node, type, times, bytes asked for, not on a thread, in a queue)])]
  nb::list functions() const {
    nb::list all;
    for (const GraphFunction& function : window_->functions()) {
      nb::list nodes;
      for (const GraphNode& node : function.nodes)
        nodes.append(nb::make_tuple(told(node.node), told(node.kind), times(node.ran), values(node.taken_bytes),
                                    values(node.elsewhere_ps), values(node.queued_ps)));
      all.append(nb::make_tuple(told(function.name), function.steps.size(), nodes));
    }
    return all;
  }

  // [(node, type, values)] of a function by its place in functions(); `inputs(node)`: names of nodes, or None.
  nb::list waits(size_t function, const nb::callable& inputs) {
    std::unordered_map<uint32_t, std::pair<bool, std::vector<uint32_t>>> known;
    const auto ask = [&](uint32_t node) -> const std::vector<uint32_t>* {
      const auto [found, is_new] = known.try_emplace(node);
      auto& [is_known, makers] = found->second;
      if (is_new) {
        const nb::object names = inputs(told(node));
        is_known = !names.is_none();
        if (is_known) {
          for (const nb::handle name : names) makers.push_back(window_->number(nb::cast<std::string>(name)));
        }
      }
      return is_known ? &makers : nullptr;
    };
    nb::list all;
    for (const GraphWait& wait : window_->waits(window_->functions().at(function), ask))
      all.append(nb::make_tuple(told(wait.node), told(wait.kind), values(wait.ps)));
    return all;
  }

  // [(name, times)]
  nb::list stages() const {
    nb::list all;
    for (const GraphStage& stage : window_->stages()) all.append(nb::make_tuple(told(stage.name), times(stage.ran)));
    return all;
  }

  // [(step, function, start, line)]
  nb::list steps() const {
    nb::list all;
    for (const GraphStep& step : window_->steps())
      all.append(nb::make_tuple(step.step, told(step.function), step.start_ps, step.line));
    return all;
  }

  // [{name, allocations, frees, requested_bytes, given_bytes, peak_bytes, reserved_bytes, fragmentation, moments}];
  // moments: [(at, bytes in use, reserved, available, fragmentation per mille, blocks in use, bytes wasted)].
  nb::list allocators(size_t most) const {
    nb::list all;
    for (const Allocator& one : leadline::xla::allocators(*space_, most)) {
      nb::list moments;
      for (const Allocator::Moment& at : one.moments)
        moments.append(
            nb::make_tuple(at.at_ps, at.in_use, at.reserved, at.available, at.fragmentation, at.blocks, at.wasted));
      nb::dict told;
      told["name"] = text(space_->strings()[one.name]);
      told["allocations"] = one.allocations;
      told["frees"] = one.frees;
      told["requested_bytes"] = one.requested_bytes;
      told["given_bytes"] = one.given_bytes;
      told["peak_bytes"] = one.peak_bytes;
      told["reserved_bytes"] = one.reserved_bytes;
      told["fragmentation"] = one.fragmentation;
      told["moments"] = moments;
      all.append(told);
    }
    return all;
  }

  // [(line, step, node, type, start, duration)]; what holds no thread has line -1, a stage its name as the type.
  nb::list spans() const {
    nb::list all;
    for (const GraphSpan& span : window_->spans())
      all.append(
          nb::make_tuple(span.line, span.step, told(span.node), told(span.kind), span.start_ps, span.duration_ps));
    return all;
  }

 private:
  nb::object told(uint32_t number) const { return text(window_->text(number)); }

  nb::bytes bytes_;
  std::string problem_;
  std::unique_ptr<Space> space_;
  std::unique_ptr<GraphWindow> window_;
};

}  // namespace

void add_graph_window(nb::module_& m) {
  nb::class_<Graphs>(m, "GraphWindow")
      .def(nb::init<nb::bytes, bool>(), nb::arg("bytes"), nb::arg("keep"))
      .def_prop_ro("problem", &Graphs::problem)
      .def_prop_ro("planes", [](const Graphs& window) { return planes_of(window.space()); })
      .def_prop_ro("lines", [](const Graphs& window) { return lines_of(window.space()); })
      .def_prop_ro("base_ns", [](const Graphs& window) { return window.space().base_ns(); })
      .def_prop_ro_static("no_step", [](const nb::handle&) { return kUnknown; })
      .def("functions", &Graphs::functions)
      .def("waits", &Graphs::waits, nb::arg("function"), nb::arg("inputs"))
      .def("stages", &Graphs::stages)
      .def("steps", &Graphs::steps)
      .def("spans", &Graphs::spans)
      .def("allocators", &Graphs::allocators, nb::arg("most"));
}

}  // namespace leadline::xla
