// Managed memory for PyTorch's pluggable allocator: what a MemPool takes its segments from. Uses the driver that the
// program has loaded, and needs no header of the vendor's.
#include <dlfcn.h>
#include <sys/types.h>

#include <cstddef>

#define LL_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

constexpr unsigned kAttachGlobal = 1;  // CU_MEM_ATTACH_GLOBAL

template <class Function>
Function driver(const char* name) noexcept {
  static void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  return library == nullptr ? nullptr : reinterpret_cast<Function>(dlsym(library, name));
}

}  // namespace

// A null pointer is torch's own sign of memory that could not be had.
LL_EXPORT void* leadline_managed_alloc(ssize_t bytes, int /*device*/, void* /*stream*/) {
  using Allocate = int (*)(unsigned long long*, size_t, unsigned);
  static const auto allocate = driver<Allocate>("cuMemAllocManaged");
  unsigned long long address = 0;
  if (allocate == nullptr || bytes <= 0 || allocate(&address, static_cast<size_t>(bytes), kAttachGlobal) != 0) {
    return nullptr;
  }
  return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr): the driver's addresses are numbers
}

LL_EXPORT void leadline_managed_free(void* address, ssize_t /*bytes*/, int /*device*/, void* /*stream*/) {
  using Free = int (*)(unsigned long long);
  static const auto give_back = driver<Free>("cuMemFree_v2");
  if (give_back != nullptr && address != nullptr) give_back(reinterpret_cast<unsigned long long>(address));
}
