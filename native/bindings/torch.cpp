// attach_torch and detach_torch: the provider's options, and what code objects mean to the call path.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "bindings/bindings.h"
#include "stack/call_path.h"
#include "stack/path_frames.h"
#include "stack/python_anchors.h"

namespace nb = nanobind;

namespace leadline::bindings {
namespace {

bool g_modules = true;
CodeRoles& roles_in_force() {
  static auto* const roles = new CodeRoles();
  return *roles;
}
// Of packages that open regions, known since they were imported.
std::vector<CodeRoles::Known>& openers() {
  static auto* const known = new std::vector<CodeRoles::Known>();
  return *known;
}

std::vector<std::string>& hidden_folders() {
  static auto* const known = new std::vector<std::string>();
  return *known;
}

// The code objects whose addresses the roles hold; kept alive so that no other code takes an address.
nb::list& kept_codes() {
  static auto* const kept = new nb::list();  // never destroyed: the interpreter may be gone by then
  return *kept;
}

void add_codes(const nb::dict& info, const char* key, CodeRole role, CodeRoles* roles) {
  if (!info.contains(key)) return;
  for (const nb::handle code : info[key]) {
    roles->known.push_back({reinterpret_cast<uintptr_t>(code.ptr()), role});
    kept_codes().append(code);
  }
}

std::string own_folder() {
  const nb::object path = nb::module_::import_("leadline.capture").attr("__path__");
  return nb::cast<std::string>(nb::str(path[0])) + "/";
}

// What holds without torch too: our own machinery, and what enters a `with` block on behalf of somebody.
CodeRoles base_roles() {
  CodeRoles roles;
  roles.own_package = own_folder();
  roles.known = openers();
  roles.hidden_folders = hidden_folders();
  const nb::object contextlib = nb::module_::import_("contextlib");
  constexpr const char* kEntries[][2] = {{"_GeneratorContextManager", "__enter__"},
                                         {"_AsyncGeneratorContextManager", "__aenter__"},
                                         {"ExitStack", "enter_context"},
                                         {"AsyncExitStack", "enter_async_context"}};
  for (const auto& [owner, name] : kEntries) {
    const nb::object function = nb::getattr(nb::getattr(contextlib, owner, nb::none()), name, nb::none());
    const nb::object code = nb::getattr(function, "__code__", nb::none());
    if (code.is_none()) continue;
    roles.known.push_back({reinterpret_cast<uintptr_t>(code.ptr()), CodeRole::kBlockEntry});
    kept_codes().append(code);
  }
  return roles;
}

void put_in_force(CodeRoles roles) {
  PathFrames::set_roles(roles);
  roles_in_force() = std::move(roles);
}

// What a package opens regions with, such as an `__enter__`: the region is its caller's.
void add_openers(const nb::list& codes) {
  CodeRoles roles = roles_in_force();
  for (const nb::handle code : codes) {
    const auto address = reinterpret_cast<uintptr_t>(code.ptr());
    const auto is_it = [&](const CodeRoles::Known& known) { return known.code == address; };
    if (std::any_of(openers().begin(), openers().end(), is_it)) continue;
    openers().push_back({address, CodeRole::kOpener});
    roles.known.push_back(openers().back());
    kept_codes().append(code);
  }
  put_in_force(std::move(roles));
}

// Whose frames are left out of call paths; `folder` ends with a slash.
void hide_folder(const std::string& folder) {
  std::vector<std::string>& known = hidden_folders();
  if (std::find(known.begin(), known.end(), folder) != known.end()) return;
  known.push_back(folder);
  CodeRoles roles = roles_in_force();
  roles.hidden_folders = known;
  put_in_force(std::move(roles));
}

nb::dict attach_torch(const nb::dict& info) {
  CodeRoles roles = base_roles();
  if (g_modules) add_codes(info, "module_call", CodeRole::kModuleCall, &roles);
  add_codes(info, "hidden", CodeRole::kHidden, &roles);
  add_codes(info, "opener", CodeRole::kOpener, &roles);
  add_codes(info, "recompute", CodeRole::kRecompute, &roles);
  put_in_force(std::move(roles));
  nb::dict own;
  own["self_test"] = info["self_test"];
  return provider_start("torch", own);
}

}  // namespace

void remember_modules(bool modules) {
  g_modules = modules;
  // Without torch there are still regions, whose own machinery is not for the user's eyes.
  put_in_force(base_roles());
}

void define_torch(nb::module_& m) {
  m.def("add_openers", &add_openers, nb::arg("codes"));
  m.def("hide_folder", &hide_folder, nb::arg("folder"));
  m.def("attach_torch", &attach_torch);
  m.def("anchor_calls_of", [](const nb::handle type) { anchor_calls_of(type.ptr()); });
  m.def("release_calls_of", [](const nb::handle type) { release_calls_of(type.ptr()); });
  m.def("anchor_method", [](const nb::handle method) { return anchor_method(method.ptr()); });
  m.def("release_method", &release_method);
  m.def("check_walks", [](bool on) {
    const CallPath::WalkCheck seen = CallPath::check_walks(on);
    return nb::make_tuple(seen.checked, seen.wrong);
  });
  m.def("detach_torch", [] { provider_stop("torch"); });
}

}  // namespace leadline::bindings
