// libleadline_rocm.so: what ROCP_TOOL_LIBRARIES names, and HSA_TOOLS_LIB where there is no rocprofiler-sdk.
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

// By HSA while it starts: hsa_api_trace.h there. True: go on.
extern "C" __attribute__((visibility("default"))) bool OnLoad(void*, unsigned long, unsigned long, const char* const*) {
  const auto started = reinterpret_cast<void (*)()>(leadline::native_function("leadline_hsa_started"));
  if (started) started();
  return true;
}
extern "C" __attribute__((visibility("default"))) void OnUnload() {}
