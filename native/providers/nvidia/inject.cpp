// libleadline_inject.so: what NVTX_INJECTION64_PATH names. No dependency but the C library, so that it loads anywhere.
//
// It only finds Leadline's native module, if the process has it, and hands the question on. In a process that is not
// being measured it answers 0 and NVTX stays as it would be without a tool.
#include <dlfcn.h>
#include <link.h>
#include <string.h>

namespace {

using Initialize = int (*)(const void* (*get_export_table)(unsigned));

int ask(struct dl_phdr_info* info, unsigned long, void* out) {
  const char* path = info->dlpi_name;
  if (!path || !*path) return 0;
  const char* slash = strrchr(path, '/');
  // leadline/_native.*.so, or a program that links the provider (tests).
  if (strncmp(slash ? slash + 1 : path, "_native", 7) != 0) return 0;
  void* module = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
  if (!module) return 0;
  *static_cast<Initialize*>(out) = reinterpret_cast<Initialize>(dlsym(module, "leadline_nvtx_initialize"));
  dlclose(module);  // NOLOAD counted one reference; the module stays as long as Python keeps it
  return *static_cast<Initialize*>(out) != nullptr ? 1 : 0;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(
    const void* (*get_export_table)(unsigned)) {
  auto initialize = reinterpret_cast<Initialize>(dlsym(RTLD_DEFAULT, "leadline_nvtx_initialize"));
  if (!initialize) dl_iterate_phdr(ask, &initialize);
  return initialize ? initialize(get_export_table) : 0;
}
