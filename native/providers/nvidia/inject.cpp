// libleadline_inject.so: what NVTX_INJECTION64_PATH and CUDA_INJECTION64_PATH name.
//
// It only finds Leadline's native module, if the process has it, and hands the call on. In a process that is not being
// measured NVTX and the driver go on as they would without a tool.
#include "base/native_module.h"

// By NVTX at the program's first NVTX call.
extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(
    const void* (*get_export_table)(unsigned)) {
  using Initialize = int (*)(const void* (*)(unsigned));
  const auto initialize = reinterpret_cast<Initialize>(leadline::native_function("leadline_nvtx_initialize"));
  return initialize ? initialize(get_export_table) : 0;
}

// By the driver inside the program's first cuInit().
extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  using Initialize = int (*)();
  const auto initialize = reinterpret_cast<Initialize>(leadline::native_function("leadline_cuda_initialize"));
  return initialize ? initialize() : 1;
}
