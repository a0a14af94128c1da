#include "providers/torch/memory_hooks.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/got_patch.h"
#include "base/library.h"
#include "monitor/monitor.h"
#include "providers/torch/value_numbers.h"

namespace leadline::torch {
namespace {

// c10::Device, passed by value.
struct Device {
  int8_t type;
  int8_t index;
};

using AllocCpu = void* (*)(size_t);
using FreeCpu = void (*)(void*);
using Report = void (*)(void*, int64_t, size_t, size_t, Device);

std::atomic<bool> g_attached{false};
std::atomic<bool> g_running{false};
std::atomic<AllocCpu> g_alloc_cpu{nullptr};
std::atomic<FreeCpu> g_free_cpu{nullptr};
std::atomic<Report> g_report{nullptr};

// Changed by attach and detach only; never destroyed, since other threads may allocate while the process ends.
std::vector<GotPatch>& patches() {
  static auto* const all = new std::vector<GotPatch>();
  return *all;
}

void emit(void* address, int64_t bytes, int32_t type, int32_t device, int64_t allocated, int64_t reserved) noexcept {
  Monitor::instance().memory({reinterpret_cast<uint64_t>(address), bytes, type, device, allocated, reserved});
}

// The monitor's number of a c10::DeviceType. ROCm builds say CUDA.
int32_t device_type(int8_t c10_type) noexcept {
  constexpr int32_t kOther = 3;
  switch (c10_type) {
    case 0:
      return 0;
    case 1:
      return 1;
    case 6:
      return 2;  // HIP
    case 9:
      return 7;  // XLA
    case 12:
      return 4;  // XPU
    case 13:
      return 5;  // MPS
    case 15:
      return 6;  // HPU
    case 19:
      return 8;  // MTIA
    default:
      return kOther;  // such as PrivateUse1
  }
}

bool wanted() noexcept {
  return g_running.load(std::memory_order_relaxed) && Monitor::instance().active(LEADLINE_DOMAIN_MEMORY) != 0;
}

[[gnu::hot]] void* alloc_cpu(size_t bytes) {
  void* address = g_alloc_cpu.load(std::memory_order_relaxed)(bytes);
  if (address != nullptr && wanted()) emit(address, static_cast<int64_t>(bytes), 0, -1, -1, -1);
  if (address != nullptr && ValueNumbers::on()) [[unlikely]]
    ValueNumbers::allocated(address, bytes, true);
  return address;
}

[[gnu::hot]] void free_cpu(void* address) {
  // Before the memory is given back: another thread may get the address at once.
  if (address != nullptr && wanted()) emit(address, INT64_MIN, 0, -1, -1, -1);
  if (address != nullptr && ValueNumbers::on()) [[unlikely]]
    ValueNumbers::freed(address);
  g_free_cpu.load(std::memory_order_relaxed)(address);
}

void report(void* address, int64_t bytes, size_t allocated, size_t reserved, Device device) {
  if (wanted() && device.type == 0) {
    emit(address, bytes, 0, -1, -1, -1);  // memory mapped between processes; other memory of the CPU: alloc_cpu
  } else if (wanted()) {
    emit(address, bytes, device_type(device.type), device.index, static_cast<int64_t>(allocated),
         static_cast<int64_t>(reserved));
  }
  if (device.type != 0 && ValueNumbers::on()) [[unlikely]] {
    if (bytes > 0) ValueNumbers::allocated(address, static_cast<size_t>(bytes), false);
    if (bytes < 0) ValueNumbers::freed(address);
  }
  g_report.load(std::memory_order_relaxed)(address, bytes, allocated, reserved, device);
}

std::string_view file_name(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

// The original is known before a replacement can be called. `callers`: what the names of libraries whose calls are
// redirected begin with.
template <typename Function>
bool redirect(const Library& c10, const char* symbol, Function replacement, std::atomic<Function>& original,
              std::initializer_list<std::string_view> callers) {
  const Function found = c10.symbol<std::remove_pointer_t<Function>>(symbol);
  if (found == nullptr) return false;
  original.store(found);
  GotPatch patch = GotPatch::install(symbol, reinterpret_cast<void*>(replacement), [&](std::string_view path) {
    const std::string_view name = file_name(path);
    return std::any_of(callers.begin(), callers.end(), [&](std::string_view one) { return name.starts_with(one); });
  });
  if (patch.replaced() == 0) return false;
  patches().push_back(std::move(patch));
  return true;
}

}  // namespace

bool MemoryHooks::attach(std::string* why) {
  if (g_attached.load()) return true;
  const std::optional<Library> c10 = Library::find_loaded("libc10.so");
  const bool allocates = c10 && redirect(*c10, "_ZN3c109alloc_cpuEm", &alloc_cpu, g_alloc_cpu, {"libc10"});
  const bool frees = allocates && redirect(*c10, "_ZN3c108free_cpuEPv", &free_cpu, g_free_cpu, {"libc10"});
  if (c10)
    redirect(*c10, "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE", &report, g_report,
             {"libc10_", "libtorch_cpu"});
  if (!allocates || !frees) {
    detach();
    *why = "this torch does not call its CPU allocator through the symbol table, so CPU tensor memory is not measured";
    return false;
  }
  g_attached.store(true);
  return true;
}

void MemoryHooks::set_running(bool running) noexcept { g_running.store(running && g_attached.load()); }

void MemoryHooks::detach() noexcept {
  g_attached.store(false);
  g_running.store(false);
  for (GotPatch& patch : patches()) patch.restore();
  patches().clear();
}

}  // namespace leadline::torch
