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

}  // namespace

void define_nvidia(nb::module_& m) {
  m.def("attach_nvidia", [](const nb::dict& options) { return start(options, false); });
  m.def("await_nvidia", [](const nb::dict& options) { return start(options, true); });
  m.def("detach_nvidia", [] { return provider_stop("nvidia"); });
  m.def("nvidia_pause", [](const std::string& tool) {
    const nb::gil_scoped_release no_gil;
    nvidia::pause(tool);
  });
  m.def("nvidia_resume", [] {
    nvidia::Status status;
    {
      const nb::gil_scoped_release no_gil;
      status = nvidia::resume();
    }
    return to_dict(status);
  });
  m.def("nvidia_flush", [](double timeout_s) {
    const nb::gil_scoped_release no_gil;
    return nvidia::flush(timeout_s);
  });
  m.def("nvidia_status", [] { return nvidia::status_json(); });
  m.def("nvidia_kernel_source", [](const std::string& kernel, std::string file, int32_t line, std::string detail) {
    nvidia::set_kernel_source(kernel, {std::move(file), line, std::move(detail)});
  });
  m.def("nvidia_kernel_user",
        [](const std::string& kernel, std::string user, std::string file, int32_t line, std::string detail) {
          nvidia::set_kernel_user(kernel, std::move(user), {std::move(file), line, std::move(detail)});
        });
  m.def("nvtx_start", &nvidia::nvtx_start, nb::arg("skipped_domains"));
  m.def("nvtx_stop", &nvidia::nvtx_stop);
  m.def("nvtx_status", &nvidia::nvtx_status_json);
}

}  // namespace leadline::bindings
