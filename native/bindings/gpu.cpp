// What Python tells of GPU kernels, whoever made the device. Conversions only.
#include "gpu/kernel_names.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>

#include "bindings/bindings.h"

namespace nb = nanobind;

namespace leadline::bindings {
namespace {

void add_windows(nb::dict& to, const gpu::WindowCounters& of) {
  to["windows"] = of.windows;
  to["open_ns"] = of.open_ns;
  to["spent_ns"] = of.spent_ns;
}

}  // namespace

nb::dict to_dict(const gpu::InstructionDetails& of) {
  nb::dict told;
  told["mode"] = of.mode;
  told["message"] = of.message;
  add_windows(told, of.windows);
  told["samples"] = of.samples.samples;
  told["by_launch"] = of.samples.by_launch;
  told["unattributed"] = of.samples.unattributed;
  told["dropped"] = of.dropped;
  told["other_samples"] = of.other_samples;
  told["code_bytes"] = of.code_bytes;
  return told;
}

nb::dict to_dict(const gpu::CounterDetails& of) {
  nb::dict told;
  told["metrics"] = of.metrics;
  told["chips"] = of.chips;
  told["message"] = of.message;
  add_windows(told, of.windows);
  told["readings"] = of.samples.readings;
  told["no_record"] = of.samples.no_record;
  return told;
}

void add_details(nb::dict& to, const gpu::Details& of) {
  to["clock_uncertainty_ns"] = of.clock_uncertainty_ns;
  to["calls_followed"] = of.calls_followed;
  to["calls"] = of.calls;
  to["records"] = of.records;
  to["unattributed"] = of.unattributed;
  to["dropped"] = of.dropped;
  to["outstanding"] = of.outstanding;
  to["graph_nodes"] = of.graph_nodes;
  to["graph_nodes_unknown"] = of.graph_nodes_unknown;
  to["fold_ns"] = of.fold_ns;
  to["held_bytes"] = of.held_bytes;
}

void define_gpu(nb::module_& m) {
  m.def("gpu_kernel_source", [](const std::string& kernel, std::string file, int32_t line, std::string detail) {
    gpu::kernel_sources().put(kernel, {std::move(file), line, std::move(detail)});
  });
  m.def("gpu_kernel_user",
        [](const std::string& kernel, std::string user, std::string file, int32_t line, std::string detail) {
          gpu::kernel_sources().put_user(kernel, std::move(user), {std::move(file), line, std::move(detail)});
        });
}

}  // namespace leadline::bindings
