// For the small libraries that vendors' tools interfaces load (CUDA_INJECTION64_PATH, ROCP_TOOL_LIBRARIES): finds
// functions of Leadline's native module, if the process has it. Needs nothing but the C library, so that they load
// anywhere.
#pragma once

#include <dlfcn.h>
#include <link.h>
#include <string.h>

namespace leadline {

struct WantedFunction {
  const char* name;
  void* address;
};

inline int ask_library(struct dl_phdr_info* info, unsigned long, void* out) {
  auto* wanted = static_cast<WantedFunction*>(out);
  const char* path = info->dlpi_name;
  if (!path || !*path) return 0;
  const char* slash = strrchr(path, '/');
  if (strncmp(slash ? slash + 1 : path, "_native", 7) != 0) return 0;  // leadline/_native.*.so
  void* module = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
  if (!module) return 0;
  wanted->address = dlsym(module, wanted->name);
  dlclose(module);  // NOLOAD counted one reference; the module stays as long as Python keeps it
  return wanted->address != nullptr ? 1 : 0;
}

// A function of the native module, or of a program that has linked the provider (tests); nullptr where there is none.
inline void* native_function(const char* name) {
  WantedFunction wanted{name, dlsym(RTLD_DEFAULT, name)};
  if (!wanted.address) dl_iterate_phdr(ask_library, &wanted);
  return wanted.address;
}

}  // namespace leadline
