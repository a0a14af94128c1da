#include "base/library.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>

namespace leadline {
namespace {

std::string_view file_name(std::string_view path) noexcept {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

LoadedLibrary describe(const dl_phdr_info& info) {
  LoadedLibrary library;
  library.path = info.dlpi_name != nullptr ? info.dlpi_name : "";
  library.base = info.dlpi_addr;
  library.begin = ~std::uintptr_t{0};
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const auto& header = info.dlpi_phdr[i];
    if (header.p_type != PT_LOAD) continue;
    library.begin = std::min(library.begin, static_cast<std::uintptr_t>(info.dlpi_addr + header.p_vaddr));
    library.end = std::max(library.end, static_cast<std::uintptr_t>(info.dlpi_addr + header.p_vaddr + header.p_memsz));
  }
  if (library.end == 0) library.begin = 0;
  return library;
}

}  // namespace

std::vector<LoadedLibrary> loaded_libraries() {
  std::vector<LoadedLibrary> libraries;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* out) {
        static_cast<std::vector<LoadedLibrary>*>(out)->push_back(describe(*info));
        return 0;
      },
      &libraries);
  return libraries;
}

std::optional<Library> Library::find_loaded(std::string_view name_prefix) {
  for (const LoadedLibrary& library : loaded_libraries()) {
    if (!file_name(library.path).starts_with(name_prefix) || name_prefix.empty()) continue;
    if (void* handle = dlopen(library.path.c_str(), RTLD_NOLOAD | RTLD_NOW)) return Library(handle, library.path);
  }
  return std::nullopt;
}

std::optional<Library> Library::open(std::span<const std::string> candidates, std::string* error) {
  std::string tried;
  std::string answer = "no name was given";
  for (const std::string& candidate : candidates) {
    if (void* handle = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL)) {
      link_map* map = nullptr;
      const bool known = dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr && map->l_name != nullptr;
      return Library(handle, known ? map->l_name : candidate);
    }
    const char* reason = dlerror();
    answer = reason != nullptr ? reason : "the loader gave no reason";
    tried += (tried.empty() ? "" : ", ") + candidate;
  }
  if (error != nullptr) *error = "none of [" + tried + "] could be loaded: " + answer;
  return std::nullopt;
}

Library Library::process() { return {dlopen(nullptr, RTLD_NOW), ""}; }

void* Library::address(const char* name) const noexcept { return dlsym(handle_, name); }

}  // namespace leadline
