// Modules, functions and limits of the fake driver: what a program needs that brings its own machine code, as Triton
// does. No code is read: a function is the name it was asked for, and runs as long as every other one.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

#include "testing/nvidia/fake_api.h"
#include "testing/nvidia/fake_gpu.h"

using namespace leadline::testing;  // NOLINT: one file, exported C names only

namespace {

constexpr int kMaxThreadsPerBlock = 0;  // CU_FUNC_ATTRIBUTE_*
constexpr int kRegisters = 4;
constexpr std::int64_t kDurationNs = 20'000;

struct NamedKernel {
  std::string name;
  FakeKernel kernel;
};

FakeGpu& gpu() { return FakeGpu::instance(); }

}  // namespace

extern "C" {

// The size of an ELF file whose table of sections is its end, as compilers write it; 0 for anything else.
static std::size_t image_bytes(const void* image) {
  const auto* bytes = static_cast<const unsigned char*>(image);
  if (std::memcmp(bytes,
                  "\x7f"
                  "ELF\x02",
                  5) != 0)
    return 0;
  std::uint64_t table = 0;
  std::uint64_t segments = 0;
  std::uint16_t count = 0;
  std::uint16_t segment_count = 0;
  std::memcpy(&segments, bytes + 32, sizeof segments);
  std::memcpy(&table, bytes + 40, sizeof table);
  std::memcpy(&segment_count, bytes + 56, sizeof segment_count);
  std::memcpy(&count, bytes + 60, sizeof count);
  return std::max(table + 64u * count, segments + 56u * segment_count);
}
int cuModuleLoadData(void** module, const void* image) {
  if (const std::size_t bytes = image_bytes(image); bytes > 0) gpu().load_code(image, bytes, 0);
  *module = gpu().keep(std::make_unique<const void*>(image));
  return 0;
}
int cuModuleUnload(void*) {
  gpu().unload_code(0);
  return 0;
}
int cuModuleGetFunction(void** function, void*, const char* name) {
  auto* named = gpu().keep(std::make_unique<NamedKernel>());
  named->name = name;
  named->kernel.name = named->name.c_str();
  named->kernel.duration_ns = kDurationNs;
  *function = &named->kernel;
  return 0;
}
int cuFuncGetAttribute(int* value, int attribute, void* function) {
  const auto& kernel = *static_cast<const FakeKernel*>(function);
  *value = attribute == kMaxThreadsPerBlock ? 1024 : attribute == kRegisters ? kernel.registers : 0;
  return 0;
}
int cuFuncSetAttribute(void*, int, int) { return 0; }
int cuFuncSetCacheConfig(void*, int) { return 0; }
int cuCtxSetCurrent(void*) { return 0; }
int cuCtxGetLimit(std::size_t* value, int) {
  *value = 0;
  return 0;
}
int cuCtxSetLimit(int, std::size_t) { return 0; }
int cuPointerGetAttribute(void* value, int, std::uint64_t pointer) {
  *static_cast<std::uint64_t*>(value) = pointer;
  return 0;
}

}  // extern "C"
