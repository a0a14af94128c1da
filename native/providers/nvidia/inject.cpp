// libleadline_inject.so: what NVTX_INJECTION64_PATH and CUDA_INJECTION64_PATH name. No dependency but the C library, so
// that it loads anywhere.
//
// It only finds Leadline's native module, if the process has it, and hands the call on. In a process that is not being
// measured NVTX and the driver go on as they would without a tool.
#include <dlfcn.h>
#include <link.h>
#include <string.h>

namespace {

struct Wanted {
  const char* name;
  void* address;
};

int ask(struct dl_phdr_info* info, unsigned long, void* out) {
  auto* wanted = static_cast<Wanted*>(out);
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
void* find(const char* name) {
  Wanted wanted{name, dlsym(RTLD_DEFAULT, name)};
  if (!wanted.address) dl_iterate_phdr(ask, &wanted);
  return wanted.address;
}

}  // namespace

// By NVTX at the program's first NVTX call.
extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(
    const void* (*get_export_table)(unsigned)) {
  using Initialize = int (*)(const void* (*)(unsigned));
  const auto initialize = reinterpret_cast<Initialize>(find("leadline_nvtx_initialize"));
  return initialize ? initialize(get_export_table) : 0;
}

// By the driver inside the program's first cuInit().
extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  using Initialize = int (*)();
  const auto initialize = reinterpret_cast<Initialize>(find("leadline_cuda_initialize"));
  return initialize ? initialize() : 1;
}
