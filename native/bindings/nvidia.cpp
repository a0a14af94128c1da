// attach_nvidia and what belongs to it. Conversions only.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

#include "bindings/bindings.h"
#include "providers/nvidia/nvtx.h"
#include "providers/nvidia/provider.h"
#include "session/session.h"

namespace nb = nanobind;

namespace leadline::bindings {
namespace {

nb::dict to_dict(const nvidia::Status& status) {
  nb::dict result;
  result["measuring"] = status.measuring;
  result["timing_regions"] = status.timing_regions;
  result["message"] = status.message;
  result["holder"] = status.holder;
  result["awaiting"] = status.awaiting;
  return result;
}

template <class T>
T value_or(const nb::dict& info, const char* key, T otherwise) {
  return info.contains(key) ? nb::cast<T>(info[key]) : otherwise;
}

// `info`: cupti_candidates (list of paths), shared, whole_graphs, flush_interval_s, recording.
nvidia::Options options_of(const nb::dict& info) {
  nvidia::Options options;
  options.cupti_candidates = value_or(info, "cupti_candidates", std::vector<std::string>());
  options.shared = value_or(info, "shared", options.shared);
  options.whole_graphs = value_or(info, "whole_graphs", options.whole_graphs);
  options.flush_interval_s = value_or(info, "flush_interval_s", options.flush_interval_s);
  options.recording = value_or(info, "recording", std::string());
  options.describe_device = [](DeviceDescription device) {
    if (DeviceTable* devices = Session::instance().devices()) devices->describe(std::move(device));
  };
  return options;
}

template <nvidia::Status (*begin)(const nvidia::Options&)>
nb::dict attach(const nb::dict& info) {
  const nvidia::Options options = options_of(info);
  nvidia::Status status;
  {
    const nb::gil_scoped_release no_gil;
    status = begin(options);
  }
  return to_dict(status);
}

nb::dict detach_nvidia() {
  nvidia::Status status;
  {
    const nb::gil_scoped_release no_gil;
    status = nvidia::stop();
  }
  return to_dict(status);
}

}  // namespace

void define_nvidia(nb::module_& m) {
  m.def("attach_nvidia", &attach<nvidia::start>);
  m.def("await_nvidia", &attach<nvidia::await_cuda>);
  m.def("detach_nvidia", &detach_nvidia);
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
