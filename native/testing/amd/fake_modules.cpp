// Kernels that a program compiles while it runs: the fake hiprtc hands over a program's text as its code, and any name
// that stands in a module's text is a kernel of it.
#include <cstring>
#include <string>

#include "testing/amd/fake_rocm.h"

using namespace leadline::testing::rocm;  // NOLINT: one file, exported C names only

namespace {

constexpr int kNotFound = 500;
constexpr std::int64_t kKernelNs = 500'000;

struct Compiled {
  std::string name;
  Kernel kernel;
};

}  // namespace

// Modules and their kernels are the program's until it ends, as those that a real one never unloads.
extern "C" {

int hipModuleLoadData(void** module, const void* image) {
  FakeRocm::instance().start_hip();
  *module = new std::string(static_cast<const char*>(image));
  return 0;
}
int hipModuleGetFunction(void** function, void* module, const char* name) {
  if (static_cast<const std::string*>(module)->find(name) == std::string::npos) return kNotFound;
  auto* made = new Compiled{name, {}};
  made->kernel.name = made->name.c_str();
  made->kernel.duration_ns = kKernelNs;
  *function = &made->kernel;
  return 0;
}

}  // extern "C"
