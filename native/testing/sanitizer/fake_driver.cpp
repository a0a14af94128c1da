// What stands behind the vendor's functions.

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>

#include "testing/sanitizer/fake_device.h"

namespace leadline::testing::sanitizer {

abi::Result FakeDevice::subscribe(abi::Subscriber* out, abi::Callback callback, void* user) {
  if (taken || callback_ != nullptr) return abi::kMaxLimitReached;
  user_ = user;
  domains_ = 0;
  callback_ = callback;
  *out = reinterpret_cast<abi::Subscriber>(this);
  return abi::kSuccess;
}

abi::Result FakeDevice::unsubscribe() {
  callback_ = nullptr;
  return abi::kSuccess;
}

void FakeDevice::enable(abi::Domain domain, bool on) {
  const std::uint32_t bit = 1U << static_cast<int>(domain);
  if (on) {
    domains_ |= bit;
  } else {
    domains_ &= ~bit;
  }
}

abi::Result FakeDevice::add_patches(const char* image, FakeContext* context) {
  if (refuses != abi::kSuccess) return refuses;
  static constexpr const char kHead[] = "leadline fake patches\n";
  if (std::strncmp(image, kHead, sizeof kHead - 1) != 0) return abi::kInvalidParameter;
  void* const library = ::dlopen(image + sizeof kHead - 1, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return abi::kInvalidParameter;
  const std::lock_guard lock(mutex_);
  context->patches = library;
  return abi::kSuccess;
}

abi::Result FakeDevice::ask_patch(abi::Point point, FakeModule* module, const char* name) {
  if (refuses != abi::kSuccess) return refuses;
  const std::lock_guard lock(mutex_);
  if (static_cast<int>(point) > last_point || module->context->patches == nullptr) return abi::kInvalidParameter;
  void* const patch = ::dlsym(module->context->patches, name);
  if (patch == nullptr) return abi::kInvalidParameter;
  module->asked[point] = patch;
  return abi::kSuccess;
}

abi::Result FakeDevice::patch(FakeModule* module, bool on) {
  if (refuses != abi::kSuccess) return refuses;
  const std::lock_guard lock(mutex_);
  module->patched = on ? module->asked : Patches{};
  return abi::kSuccess;
}

bool FakeDevice::is_module(const FakeModule* module) {
  const std::lock_guard lock(mutex_);
  for (const auto& [name, one] : modules_) {
    if (one.get() == module) return true;
  }
  return false;
}

void* FakeDevice::allocate(std::size_t bytes) {
  if (refuses != abi::kSuccess ||
      memory_left.fetch_sub(static_cast<std::int64_t>(bytes)) < static_cast<std::int64_t>(bytes)) {
    return nullptr;
  }
  void* const memory = std::malloc(bytes);
  std::memset(memory, 0xa5, bytes);
  const std::lock_guard lock(mutex_);
  allocations_[memory] = bytes;
  return memory;
}

abi::Result FakeDevice::release(void* memory) {
  const std::lock_guard lock(mutex_);
  if (allocations_.erase(memory) == 0) return abi::kInvalidParameter;
  std::free(memory);
  return abi::kSuccess;
}

std::size_t FakeDevice::held_allocations() {
  const std::lock_guard lock(mutex_);
  return allocations_.size();
}

void FakeDevice::count(const char* function) {
  const std::lock_guard lock(mutex_);
  ++calls_[function];
}

std::uint64_t FakeDevice::calls(const std::string& function) {
  const std::lock_guard lock(mutex_);
  const auto found = calls_.find(function);
  return found == calls_.end() ? 0 : found->second;
}

}  // namespace leadline::testing::sanitizer
