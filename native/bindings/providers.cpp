// provider_start, provider_stop, provider_status: the same three for every provider of the session. Conversions only.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "base/losses.h"
#include "bindings/bindings.h"
#include "providers/cpu/provider.h"
#include "session/session.h"

namespace nb = nanobind;

namespace leadline::bindings {
namespace {

ProviderStatus status_of(const nb::dict& answer) {
  ProviderStatus status;
  for (const auto& [key, value] : answer) {
    const std::string name = nb::cast<std::string>(key);
    if (nb::isinstance<nb::bool_>(value)) {
      status[name] = nb::cast<bool>(value);
    } else if (nb::isinstance<nb::int_>(value)) {
      status[name] = nb::cast<int64_t>(value);
    } else if (nb::isinstance<nb::float_>(value)) {
      status[name] = nb::cast<double>(value);
    } else {
      status[name] = nb::cast<std::string>(nb::str(value));
    }
  }
  return status;
}

// A Python function as a provider may call it: it takes the GIL, and what it raises is a sentence.
ProviderCall call_of(nb::handle function) {
  return [function] {
    const nb::gil_scoped_acquire gil;
    try {
      return status_of(nb::cast<nb::dict>(function()));
    } catch (const std::exception& error) {
      return ProviderStatus{{"message", std::string(error.what())}};
    }
  };
}

ProviderOption option_of(nb::handle value) {
  if (nb::isinstance<nb::bool_>(value)) return nb::cast<bool>(value);
  if (nb::isinstance<nb::int_>(value)) return nb::cast<int64_t>(value);
  if (nb::isinstance<nb::float_>(value)) return nb::cast<double>(value);
  if (nb::isinstance<nb::str>(value)) return nb::cast<std::string>(value);
  if (nb::isinstance<nb::list>(value)) return nb::cast<std::vector<std::string>>(value);
  return call_of(value);
}

template <typename Call>
nb::dict answered(const Call& call) {
  ProviderStatus status;
  {
    const nb::gil_scoped_release no_gil;
    status = call();
  }
  return to_dict(status);
}

}  // namespace

nb::dict to_dict(const ProviderStatus& status) {
  nb::dict result;
  for (const auto& [name, value] : status)
    std::visit([&](const auto& held) { result[nb::str(name.c_str())] = nb::cast(held); }, value);
  return result;
}

// `options`: bool, int, float, str, list of str, or a function without arguments that answers with a dict of those and
// is called before this returns.
nb::dict provider_start(const std::string& name, const nb::dict& options) {
  std::map<std::string, ProviderOption> own;
  for (const auto& [key, value] : options) own[nb::cast<std::string>(key)] = option_of(value);
  return answered([&] { return Session::instance().start_provider(name, std::move(own)); });
}

nb::dict provider_stop(const std::string& name) {
  return answered([&] { return Session::instance().stop_provider(name); });
}

void define_providers(nb::module_& m) {
  m.def("provider_start", &provider_start, nb::arg("name"), nb::arg("options"));
  m.def("provider_stop", &provider_stop, nb::arg("name"));
  m.def(
      "provider_status",
      [](const std::string& name) { return answered([&] { return Session::instance().provider_status(name); }); },
      nb::arg("name"));
  m.def(
      "provider_rest", [](const std::string& name, bool rests) { Session::instance().rest_provider(name, rests); },
      nb::arg("name"), nb::arg("rests"), nb::call_guard<nb::gil_scoped_release>());
  // A sentence for each of these counters that this machine cannot count.
  m.def("cpu_thread_begins", &cpu::Provider::thread_begins, nb::call_guard<nb::gil_scoped_release>());
  m.def("refused_counters", &cpu::Provider::refused_counters, nb::arg("names"));
}

}  // namespace leadline::bindings
