// libleadline_rocm.so: what ROCP_TOOL_LIBRARIES names.
//
// It only finds Leadline's native module, if the process has it, and hands the question on. In a process that is not
// being measured rocprofiler-sdk goes on without a tool.
#include "base/native_module.h"

// By rocprofiler-sdk while HIP or HSA start: registration.h there.
extern "C" __attribute__((visibility("default"))) void* rocprofiler_configure(unsigned version, const char* description,
                                                                              unsigned priority, void* client) {
  using Configure = void* (*)(unsigned, const char*, unsigned, void*);
  const auto configure = reinterpret_cast<Configure>(leadline::native_function("leadline_rocprofiler_configure"));
  return configure ? configure(version, description, priority, client) : nullptr;
}
