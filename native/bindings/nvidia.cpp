// attach_nvidia and what belongs to it. Conversions only.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

#include "bindings/bindings.h"
#include "providers/nvidia/nvtx.h"
#include "providers/nvidia/provider.h"

namespace nb = nanobind;

namespace leadline::bindings {
namespace {

nb::dict to_dict(const nvidia::Status& status) {
  return bindings::to_dict(ProviderStatus{{"measuring", status.measuring},
                                          {"timing_regions", status.timing_regions},
                                          {"message", status.message},
                                          {"holder", status.holder},
                                          {"awaiting", status.awaiting}});
}

nb::dict start(nb::dict options, bool await) {
  options["await"] = await;
  return provider_start("nvidia", options);
}

nb::dict nvidia_status() {
  const nvidia::Report report = without_gil(nvidia::report);
  nb::dict result = to_dict(report.status);
  result["yielded_to"] = report.yielded_to;
  result["copies"] = report.copies;
  if (!report.details) return result;
  const nvidia::Details& d = *report.details;
  add_details(result, d);
  result["cupti_path"] = d.cupti_path;
  result["cupti_version"] = d.cupti_version;
  result["driver_cuda"] = d.driver_cuda;
  result["subscription"] = d.subscription;
  result["vendor_overhead_ns"] = d.vendor_overhead_ns;
  result["cupti_finalized"] = d.cupti_finalized;
  result["device_lost"] = d.device_lost;
  if (d.instructions) {
    nb::dict told = bindings::to_dict(*d.instructions);
    told["by_window"] = d.instructions->samples.by_window;
    told["buffer_full"] = d.instructions->buffer_full;
    result["instructions"] = told;
  }
  if (d.counters) {
    const nvidia::CounterDetails& c = *d.counters;
    nb::dict told = bindings::to_dict(c);
    told["overflows"] = c.overflows;
    told["aligned"] = c.aligned;
    told["rounds"] = c.rounds;
    told["failed_rounds"] = c.failed_rounds;
    told["stopped"] = c.stopped;
    result["counters"] = told;
  }
  if (d.replay) {
    const nvidia::ReplayDetails& r = *d.replay;
    nb::dict told;
    told["metrics"] = r.metrics;
    told["chips"] = r.chips;
    told["message"] = r.message;
    told["windows"] = r.windows.windows;
    told["spent_ns"] = r.windows.spent_ns;
    told["stretches"] = r.stretches;
    told["launches"] = r.launches;
    told["passes"] = r.passes;
    result["replay"] = told;
  }
  return result;
}

nb::dict nvtx_status() {
  const nvidia::NvtxStatus status = without_gil(nvidia::nvtx_status);
  nb::dict result;
  result["initialised"] = status.initialised;
  result["marks"] = status.marks;
  result["ranges"] = status.ranges;
  nb::dict domains;
  for (const nvidia::NvtxStatus::Domain& domain : status.domains) {
    nb::dict entry;
    entry["ranges"] = domain.ranges;
    entry["skipped"] = domain.skipped;
    entry["titles"] = domain.titles;
    domains[nb::str(domain.name.c_str())] = entry;
  }
  result["domains"] = domains;
  return result;
}

}  // namespace

void define_nvidia(nb::module_& m) {
  m.def("attach_nvidia", [](const nb::dict& options) { return start(options, false); });
  m.def("await_nvidia", [](const nb::dict& options) { return start(options, true); });
  m.def("detach_nvidia", [] { return provider_stop("nvidia"); });
  m.def("nvidia_yield", [](const std::string& tool) {
    const nb::gil_scoped_release no_gil;
    nvidia::yield_to(tool);
  });
  m.def("nvidia_take_back", [] {
    nvidia::Status status;
    {
      const nb::gil_scoped_release no_gil;
      status = nvidia::take_back();
    }
    return to_dict(status);
  });
  m.def("nvidia_flush", [](double timeout_s) {
    const nb::gil_scoped_release no_gil;
    return nvidia::flush(timeout_s);
  });
  m.def("nvidia_status", &nvidia_status);
  m.def("nvtx_start", &nvidia::nvtx_start, nb::arg("skipped_domains"),
        nb::arg("left_alone") = std::vector<std::string>(), nb::call_guard<nb::gil_scoped_release>());
  m.def("nvtx_stop", &nvidia::nvtx_stop, nb::call_guard<nb::gil_scoped_release>());
  m.def("nvtx_status", &nvtx_status);
}

}  // namespace leadline::bindings
