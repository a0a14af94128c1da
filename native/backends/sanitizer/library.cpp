#include "backends/sanitizer/library.h"

namespace leadline::sanitizer {

std::optional<SanitizerLibrary> SanitizerLibrary::open(std::span<const std::string> candidates, std::string* error) {
  const std::optional<Library> library = Library::open(candidates, error);
  if (!library) return std::nullopt;
  SanitizerLibrary found;
  found.path_ = library->path();
  std::string missing;
  const auto bind = [&]<class R, class... A>(const char* name, R (*&slot)(A...)) {
    slot = library->symbol<R(A...)>(name);
    if (slot == nullptr && missing.empty()) missing = name;
  };
  abi::Functions& f = found.functions_;
  bind("sanitizerSubscribe", f.subscribe);
  bind("sanitizerUnsubscribe", f.unsubscribe);
  bind("sanitizerEnableDomain", f.enable_domain);
  bind("sanitizerGetResultString", f.get_result_string);
  bind("sanitizerAddPatches", f.add_patches);
  bind("sanitizerPatchInstructions", f.patch_instructions);
  bind("sanitizerPatchModule", f.patch_module);
  bind("sanitizerUnpatchModule", f.unpatch_module);
  bind("sanitizerSetLaunchCallbackData", f.set_launch_callback_data);
  bind("sanitizerGetFunctionPcAndSize", f.get_function_pc_and_size);
  bind("sanitizerAlloc", f.alloc);
  bind("sanitizerAllocHost", f.alloc_host);
  bind("sanitizerFree", f.free);
  bind("sanitizerFreeHost", f.free_host);
  bind("sanitizerMemcpyHostToDeviceAsync", f.copy_to_device);
  bind("sanitizerMemset", f.memset);
  found.tells_filled_ = library->symbol<abi::Result(std::uint32_t*)>("sanitizerIsInsideRecursiveCallback") != nullptr;
  if (missing.empty()) return found;
  *error = found.path_ + " has no " + missing + ", so it is too old; 12.9 or later is needed";
  return std::nullopt;
}

std::string SanitizerLibrary::words(abi::Result result) const {
  const char* text = nullptr;
  if (functions_.get_result_string(result, &text) != abi::kSuccess || text == nullptr) text = "an error";
  return std::string(text) + " (" + std::to_string(result) + ")";
}

}  // namespace leadline::sanitizer
