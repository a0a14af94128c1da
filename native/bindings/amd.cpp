// attach_amd and what belongs to it. Conversions only.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings/bindings.h"
#include "providers/amd/provider.h"

namespace nb = nanobind;

namespace leadline::bindings {
namespace {

nb::dict amd_status() {
  const amd::Report report = without_gil(amd::report);
  nb::dict result = to_dict(ProviderStatus{{"measuring", report.status.measuring},
                                           {"awaiting", report.status.awaiting},
                                           {"message", report.status.message}});
  result["copies"] = report.copies;
  if (!report.details) return result;
  const amd::Details& d = *report.details;
  add_details(result, d);
  result["source"] = d.source;
  result["sdk_path"] = d.sdk_path;
  result["sdk_version"] = d.sdk_version;
  result["late"] = d.late;
  result["launches"] = d.launches;
  result["requests"] = d.requests;
  result["kernels"] = d.kernels;
  if (d.instructions) result["instructions"] = bindings::to_dict(*d.instructions);
  if (d.counters) {
    const amd::CounterDetails& c = *d.counters;
    nb::dict told = bindings::to_dict(c);
    told["dropped"] = c.dropped;
    result["counters"] = told;
  }
  return result;
}

}  // namespace

void define_amd(nb::module_& m) {
  m.def("attach_amd", [](const nb::dict& options) { return provider_start("amd", options); });
  m.def("detach_amd", [] { return provider_stop("amd"); });
  m.def("amd_flush", [](double timeout_s) {
    const nb::gil_scoped_release no_gil;
    return amd::flush(timeout_s);
  });
  m.def("amd_yield", [](const std::string& tool) {
    const nb::gil_scoped_release no_gil;
    amd::yield_to(tool);
  });
  m.def("amd_take_back", [] {
    amd::Status status;
    {
      const nb::gil_scoped_release no_gil;
      status = amd::take_back();
    }
    return to_dict(
        ProviderStatus{{"measuring", status.measuring}, {"awaiting", status.awaiting}, {"message", status.message}});
  });
  m.def("amd_status", &amd_status);
}

}  // namespace leadline::bindings
