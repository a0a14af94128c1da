#include "providers/torch/record_function.h"

namespace leadline::torch {
namespace {

// Of torch 2.4 to 2.13; what a release does not have is not missed.
constexpr const char* kObserving[] = {
    "_ZN2at14RecordFunction17runStartCallbacksEv",
    "_ZN2at14RecordFunction3endEv",
    "_ZN2at14RecordFunction6beforeESt7variantIJSt17basic_string_viewIcSt11char_traitsIcEESt17reference_"
    "wrapperIKN3c1014Fu"
    "nctionSchemaEEEEl",
    "_ZN2at14RecordFunction6beforeEPKcl",
    "_ZN2at14RecordFunction6beforeENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEEl",
    "_ZN2at14RecordFunction6beforeESsl",
    "_ZN2at14RecordFunction6beforeESt17reference_wrapperIKN3c1014FunctionSchemaEEl",
    "_ZN2at14RecordFunction6beforeESt17reference_wrapperIKN3c1014FunctionSchemaEENS2_8ArrayRefIKNS2_6IValueEEEl",
    "_ZN2at14RecordFunctionC1EONS_13StepCallbacksE",
    "_ZN2at14RecordFunctionC1ENS_11RecordScopeE",
    "_ZN2at14RecordFunctionD1Ev",
    "_ZN3c1010Dispatcher17runRecordFunctionERN2at14RecordFunctionESt17reference_wrapperIKNS_14FunctionSchemaEENS_"
    "11Dispat"
    "chKeyENS_14DispatchKeySetE",
    "_ZN3c1010Dispatcher17runRecordFunctionERN2at14RecordFunctionESt17reference_wrapperIKNS_14FunctionSchemaEENS_"
    "11Dispat"
    "chKeyENS_14DispatchKeySetENS_8ArrayRefIKNS_6IValueEEE",
    "_ZN3c1010Dispatcher38sequenceNumberForRunningRecordFunctionENS_11DispatchKeyENS_14DispatchKeySetE",
};

}  // namespace

std::optional<Symbols> Symbols::find(std::string* why) {
  const std::optional<Library> library = Library::find_loaded("libtorch_cpu.so");
  if (!library) {
    *why = "libtorch_cpu.so is not loaded in this process, so there are no PyTorch operators to see";
    return std::nullopt;
  }
  Symbols found;
  found.add_global_callback =
      library->symbol<Handle(Callback)>("_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE");
  found.remove_callback = library->symbol<void(Handle)>("_ZN2at14removeCallbackEm");
  found.name = library->symbol<const char*(const RecordFunction*)>("_ZNK2at14RecordFunction4nameEv");
  found.current_thread = library->symbol<uint64_t()>("_ZN2at14RecordFunction15currentThreadIdEv");
  if (found.add_global_callback == nullptr || found.remove_callback == nullptr || found.name == nullptr ||
      found.current_thread == nullptr) {
    *why =
        "this libtorch does not export the profiling hooks of torch 2.4 and later (at::addGlobalCallback); use a newer "
        "torch";
    return std::nullopt;
  }
  for (const char* const name : kObserving) {
    if (const auto function = library->symbol<void()>(name); function != nullptr)
      found.observing.push_back(reinterpret_cast<uintptr_t>(function));
  }
  found.input_shapes = library->symbol<Shapes(const RecordFunction&, bool)>(
      "_ZN5torch8profiler4impl10inputSizesERKN2at14RecordFunctionEb");
  // The name carries the string ABI.
  found.input_types = library->symbol<Types(const RecordFunction&)>(
      "_ZN5torch8profiler4impl10inputTypesB5cxx11ERKN2at14RecordFunctionE");
  found.old_input_types =
      reinterpret_cast<void*>(library->symbol<void()>("_ZN5torch8profiler4impl10inputTypesERKN2at14RecordFunctionE"));
  // A stream is the same in both string ABIs.
  found.write_value = library->symbol<std::ostream&(std::ostream&, const void*)>("_ZN3c10lsERSoRKNS_6IValueE");
  found.old_strings = found.input_types == nullptr && found.old_input_types != nullptr;
  found.current_node = library->symbol<void()>("_ZN5torch8autograd16get_current_nodeEv");
  if (const std::optional<Library> core = Library::find_loaded("libc10.so")) {
    found.debug_info = core->symbol<const void*(uintptr_t)>("_ZN3c1020ThreadLocalDebugInfo3getENS_13DebugInfoKindE");
    // An enumeration first; since 2.13 an object that holds one address.
    constexpr uintptr_t kCommunication = 4;
    const auto* kind =
        reinterpret_cast<const uintptr_t*>(core->symbol<void()>("_ZN3c1013DebugInfoKind16PARAM_COMMS_INFOE"));
    found.communication_kind = kind != nullptr ? *kind : kCommunication;
    found.kinds_are_addresses = kind != nullptr;
    found.current_debug_info = core->symbol<std::shared_ptr<void>()>("_ZN3c1020ThreadLocalDebugInfo7currentEv");
    found.set_debug_info = core->symbol<void(std::shared_ptr<void>)>(
        "_ZN3c1020ThreadLocalDebugInfo22_forceCurrentDebugInfoESt10shared_ptrIS0_E");
    found.push_debug_info = core->symbol<void(uintptr_t, std::shared_ptr<void>)>(
        "_ZN3c1020ThreadLocalDebugInfo5_pushENS_13DebugInfoKindESt10shared_ptrINS_13DebugInfoBaseEE");
    if (found.debug_info == nullptr || found.current_debug_info == nullptr || found.set_debug_info == nullptr)
      found.push_debug_info = nullptr;
  }
  return found;
}

}  // namespace leadline::torch
