// What Python tells of GPU kernels, whoever made the device. Conversions only.
#include "gpu/kernel_names.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <string>

#include "bindings/bindings.h"

namespace leadline::bindings {

void define_gpu(nanobind::module_& m) {
  m.def("gpu_kernel_source", [](const std::string& kernel, std::string file, int32_t line, std::string detail) {
    gpu::kernel_sources().put(kernel, {std::move(file), line, std::move(detail)});
  });
  m.def("gpu_kernel_user",
        [](const std::string& kernel, std::string user, std::string file, int32_t line, std::string detail) {
          gpu::kernel_sources().put_user(kernel, std::move(user), {std::move(file), line, std::move(detail)});
        });
}

}  // namespace leadline::bindings
