// Kernels that the program has loaded, by the SDK's number: name and what a launch of it takes. Written when code is
// loaded, read by the thread that folds records; never forgotten, since records of a kernel may come after its code has
// been unloaded.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "providers/amd/rocprofiler_abi.h"

namespace leadline::amd {

struct Kernel {
  std::string name;  // mangled
  std::int32_t vgprs = 0;
  std::int32_t agprs = 0;
  std::int32_t sgprs = 0;
  std::int32_t static_lds = 0;
};

class KernelSymbols {
 public:
  static constexpr std::size_t kMost = 1u << 18;

  // False where there is no room.
  bool put(const sdk::KernelSymbol& symbol) {
    Kernel kernel;
    std::string_view name = symbol.name ? symbol.name : "";
    if (name.ends_with(".kd")) name.remove_suffix(3);  // the kernel's descriptor, not its name
    kernel.name = name;
    kernel.static_lds = static_cast<std::int32_t>(symbol.group_segment);
    if (symbol.size >= offsetof(sdk::KernelSymbol, accum_vgprs) + sizeof symbol.accum_vgprs) {
      kernel.sgprs = static_cast<std::int32_t>(symbol.sgprs);
      kernel.vgprs = static_cast<std::int32_t>(symbol.arch_vgprs);
      kernel.agprs = static_cast<std::int32_t>(symbol.accum_vgprs);
    }
    const std::lock_guard lock(mutex_);
    if (kernels_.size() >= kMost) return false;
    kernels_.try_emplace(symbol.kernel, std::move(kernel));
    return true;
  }

  // Lives as long as this does; nullptr: unknown.
  const Kernel* find(std::uint64_t number) const {
    const std::lock_guard lock(mutex_);
    const auto found = kernels_.find(number);
    return found == kernels_.end() ? nullptr : &found->second;
  }

  std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return kernels_.size();
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<std::uint64_t, Kernel> kernels_;  // its elements stay where they are
};

}  // namespace leadline::amd
