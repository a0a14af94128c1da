#include "backends/sanitizer/known_code.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>
#include <mutex>
#include <utility>

namespace leadline::sanitizer {
namespace {

std::string readable(const char* mangled) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(::abi::__cxa_demangle(mangled, nullptr, nullptr, &status),
                                                         std::free);
  return status == 0 && text ? std::string(text.get()) : std::string(mangled);
}

}  // namespace

KnownCode::KnownCode(const SanitizerLibrary& library, const Selection& selection, std::string image,
                     std::vector<Patch> patches, bool with_pc)
    : library_(library),
      selection_(selection),
      image_(std::move(image)),
      patches_(std::move(patches)),
      with_pc_(with_pc) {}

bool KnownCode::find(const abi::LaunchData& launch, KnownFunction* known) noexcept {
  {
    const std::lock_guard lock(lock_);
    const auto found = functions_.find(launch.function);
    if (found != functions_.end()) {
      *known = found->second;
      return true;
    }
  }
  try {
    const char* const mangled = launch.function_name == nullptr ? "?" : launch.function_name;
    const std::string name = readable(mangled);
    *known = {launch.module, 0, 0, selection_.kernel(name)};
    std::uint64_t size = 0;
    if (with_pc_) library_.functions().get_function_pc_and_size(launch.module, mangled, &known->pc, &size);
    const std::lock_guard lock(lock_);
    const auto [number, is_new] = numbers_.try_emplace(name, static_cast<std::uint32_t>(names_.size()));
    if (is_new) names_.push_back(name);
    known->name = number->second;
    functions_[launch.function] = *known;
    return true;
  } catch (...) {
    return false;
  }
}

bool KnownCode::remember(abi::Module module, State state) noexcept {
  try {
    const std::lock_guard lock(lock_);
    modules_[module] = state;
    return true;
  } catch (...) {
    return false;
  }
}

abi::Result KnownCode::patch(const abi::LaunchData& launch, const char** at) noexcept {
  const abi::Functions& f = library_.functions();
  bool is_loaded = false;
  {
    const std::lock_guard lock(lock_);
    is_loaded = loaded_.contains(launch.context);
  }
  if (!is_loaded) {
    *at = "the text cannot be loaded";
    const abi::Result result = f.add_patches(image_.data(), launch.context);
    if (result != abi::kSuccess) return result;
    try {
      const std::lock_guard lock(lock_);
      loaded_.insert(launch.context);
    } catch (...) {
      return abi::kOutOfMemory;
    }
  }
  for (const Patch& one : patches_) {
    const bool filled = one.point == abi::Point::kMemcpyAsync && library_.tells_filled();
    *at = filled ? "leadline_memcpy_async_filled" : one.function;
    const abi::Result result = f.patch_instructions(one.point, launch.module, *at);
    if (result == abi::kSuccess) continue;
    if (!one.newer) return result;
    without_tma_.store(true, std::memory_order_relaxed);
  }
  *at = "the code cannot be patched";
  return f.patch_module(launch.module);
}

bool KnownCode::patched(const abi::LaunchData& launch, Lost* why) noexcept {
  *why = Lost::kNotPatched;
  {
    const std::lock_guard lock(lock_);
    const auto found = modules_.find(launch.module);
    if (found != modules_.end()) return found->second == State::kPatched;
  }
  if (patching_.exchange(true, std::memory_order_acquire)) {
    *why = Lost::kPatchedMeanwhile;
    return false;
  }
  const char* at = "";
  const abi::Result result = patch(launch, &at);
  const bool kept = remember(launch.module, result == abi::kSuccess ? State::kPatched : State::kFailed);
  if (result != abi::kSuccess) {
    try {
      std::string told = std::string(at) + ": " + library_.words(result);
      const std::lock_guard lock(lock_);
      if (problem_.empty()) problem_ = std::move(told);
    } catch (...) {
      *why = Lost::kNoMemory;
    }
  }
  patching_.store(false, std::memory_order_release);
  return kept && result == abi::kSuccess;
}

bool KnownCode::was_patched(abi::Module module) noexcept {
  const std::lock_guard lock(lock_);
  const auto found = modules_.find(module);
  return found != modules_.end() && found->second == State::kPatched;
}

void KnownCode::unloaded(abi::Module module) noexcept {
  const std::lock_guard lock(lock_);
  modules_.erase(module);
  std::erase_if(functions_, [module](const auto& one) { return one.second.module == module; });
}

void KnownCode::context_gone(abi::Context context) noexcept {
  const std::lock_guard lock(lock_);
  loaded_.erase(context);
}

void KnownCode::unpatch_all() noexcept {
  const std::lock_guard lock(lock_);  // nothing calls back any more
  for (const auto& [module, state] : modules_) {
    if (state == State::kPatched) library_.functions().unpatch_module(module);
  }
  modules_.clear();
}

std::string KnownCode::name(std::uint32_t number) {
  const std::lock_guard lock(lock_);
  return number < names_.size() ? names_[number] : "?";
}

std::string KnownCode::problem() {
  const std::lock_guard lock(lock_);
  return problem_;
}

}  // namespace leadline::sanitizer
