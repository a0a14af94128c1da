// What the files of the module share.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <string>

#include "providers/gpu_provider.h"

namespace leadline::bindings {

// What start() was told of modules, for roles that are named later.
void remember_modules(bool modules);

nanobind::dict to_dict(const ProviderStatus& status);
// What providers of GPUs say of themselves alike.
nanobind::dict to_dict(const gpu::InstructionDetails& of);
nanobind::dict to_dict(const gpu::CounterDetails& of);
void add_details(nanobind::dict& to, const gpu::Details& of);

// Asks somebody who may hold a lock while it waits for devices; other Python threads run meanwhile.
template <typename Ask>
auto without_gil(const Ask& ask) {
  const nanobind::gil_scoped_release no_gil;
  return ask();
}

nanobind::dict provider_start(const std::string& name, const nanobind::dict& options);
nanobind::dict provider_stop(const std::string& name);

void define_providers(nanobind::module_& m);
void define_booking(nanobind::module_& m);
void define_jax_runs(nanobind::module_& m);
void define_objects(nanobind::module_& m);
void define_layout(nanobind::module_& m);
void define_unwind(nanobind::module_& m);
void define_torch(nanobind::module_& m);
void define_gpu(nanobind::module_& m);
void define_amd(nanobind::module_& m);
void define_nvidia(nanobind::module_& m);
void define_sanitizer(nanobind::module_& m);
void define_tools(nanobind::module_& m);

}  // namespace leadline::bindings
