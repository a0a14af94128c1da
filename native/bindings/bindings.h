// What the files of the module share.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <string>

#include "providers/provider.h"

namespace leadline::bindings {

// What start() was told of modules, for roles that are named later.
void remember_modules(bool modules);

nanobind::dict to_dict(const ProviderStatus& status);
// What every vendor's sampling of instructions says of itself.
template <class Details>
nanobind::dict instructions_told(const Details& of) {
  nanobind::dict told;
  told["mode"] = of.mode;
  told["message"] = of.message;
  told["windows"] = of.windows;
  told["open_ns"] = of.open_ns;
  told["spent_ns"] = of.spent_ns;
  told["samples"] = of.samples;
  told["by_launch"] = of.by_launch;
  told["unattributed"] = of.unattributed;
  told["dropped"] = of.dropped;
  told["other_samples"] = of.other_samples;
  told["code_bytes"] = of.code_bytes;
  return told;
}

// What every vendor's reading of hardware counters says of itself.
template <class Details>
nanobind::dict counters_told(const Details& of) {
  nanobind::dict told;
  told["metrics"] = of.metrics;
  told["chips"] = of.chips;
  told["message"] = of.message;
  told["windows"] = of.windows;
  told["open_ns"] = of.open_ns;
  told["spent_ns"] = of.spent_ns;
  told["readings"] = of.readings;
  told["idle"] = of.idle;
  return told;
}

nanobind::dict provider_start(const std::string& name, const nanobind::dict& options);
nanobind::dict provider_stop(const std::string& name);

void define_providers(nanobind::module_& m);
void define_booking(nanobind::module_& m);
void define_layout(nanobind::module_& m);
void define_unwind(nanobind::module_& m);
void define_torch(nanobind::module_& m);
void define_gpu(nanobind::module_& m);
void define_amd(nanobind::module_& m);
void define_nvidia(nanobind::module_& m);
void define_sanitizer(nanobind::module_& m);
void define_tools(nanobind::module_& m);

}  // namespace leadline::bindings
