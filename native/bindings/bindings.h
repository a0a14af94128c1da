// What the files of the module share.
#pragma once

#include <nanobind/nanobind.h>

namespace leadline::bindings {

struct ProviderOptions {
  bool memory = true;
  bool shapes = false;
  bool modules = true;
};

// What start() was given, for providers that attach later.
void remember_options(const ProviderOptions& options);
void detach_providers();
void set_providers_running(bool running);

void define_torch(nanobind::module_& m);
void define_nvidia(nanobind::module_& m);

}  // namespace leadline::bindings
