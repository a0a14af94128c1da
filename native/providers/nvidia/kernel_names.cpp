#include "providers/nvidia/kernel_names.h"

#include <cxxabi.h>

#include <cstdlib>
#include <cstring>
#include <memory>

#include "leadline/monitor.h"

namespace leadline::nvidia {
namespace {

std::string demangle(const char* mangled) {
  if (mangled[0] != '_' || mangled[1] != 'Z') return mangled;
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(abi::__cxa_demangle(mangled, nullptr, nullptr, &status),
                                                         &std::free);
  return status == 0 && text ? text.get() : mangled;
}

}  // namespace

void KernelSources::put(const std::string& kernel, KernelSource source) {
  const std::lock_guard lock(mutex_);
  if (sources_.size() >= kMost && !sources_.contains(kernel)) return;
  sources_.insert_or_assign(kernel, std::move(source));
  version_.fetch_add(1, std::memory_order_release);
}

bool KernelSources::find(std::string_view kernel, KernelSource* source) const {
  const std::lock_guard lock(mutex_);
  const auto found = sources_.find(kernel);
  if (found == sources_.end()) return false;
  *source = found->second;
  return true;
}

std::string_view collective_of(std::string_view kernel) noexcept {
  // NCCL 2.18 and later: ncclDevKernel_AllReduce_Sum_f32_RING_LL; earlier: ncclKernel_AllReduce_RING_LL_Sum_float.
  for (const std::string_view prefix : {"ncclDevKernel_", "ncclKernel_", "ncclSymkDevKernel_"}) {
    const auto at = kernel.find(prefix);
    if (at == std::string_view::npos) continue;
    const std::string_view rest = kernel.substr(at + prefix.size());
    return rest.substr(0, rest.find_first_of("_(<"));
  }
  return {};
}

const KernelName& KernelNames::get(const char* mangled) {
  static const KernelName unnamed{.number = leadline_monitor_new_frame(),
                                  .text = "(unnamed kernel)",
                                  .collective = false,
                                  .detail = {},
                                  .file = {},
                                  .line = 0};
  if (!mangled || !*mangled) return unnamed;
  if (const std::uint64_t version = sources_.version(); version != sources_version_ || names_.size() >= kMost) {
    names_.clear();  // a source may have become known for a name met before
    met_.fill({});
    sources_version_ = version;
  }
  Met& met = met_[hash_mix(reinterpret_cast<std::uintptr_t>(mangled), 0) & (kMet - 1)];
  if (met.address == mangled && std::strcmp(met.known->first.c_str(), mangled) == 0) return met.known->second;
  auto found = names_.find(std::string_view(mangled));
  if (found == names_.end()) found = names_.emplace(mangled, learn(mangled)).first;
  met = {mangled, &*found};
  return found->second;
}

KernelName KernelNames::learn(const char* mangled) const {
  KernelName name;
  name.number = leadline_monitor_new_frame();
  name.text = demangle(mangled);
  if (const std::string_view collective = collective_of(name.text); !collective.empty()) {
    name.collective = true;
    name.detail = "{\"collective\": \"" + std::string(collective) + "\"}";
  }
  if (KernelSource source; sources_.find(mangled, &source)) {
    name.detail = std::move(source.detail);
    name.file = std::move(source.file);
    name.line = source.line;
  }
  return name;
}

}  // namespace leadline::nvidia
