// The names that the vendor's libsanitizer-public.so exports (tests/nvidia/test_sanitizer_abi.py compares them), over
// the fake device. Every call is counted.

#include <cstring>

#include "testing/sanitizer/fake_device.h"

using leadline::testing::sanitizer::FakeContext;
using leadline::testing::sanitizer::FakeDevice;
using leadline::testing::sanitizer::FakeFunction;
using leadline::testing::sanitizer::FakeLaunch;
using leadline::testing::sanitizer::FakeModule;
namespace abi = leadline::sanitizer::abi;

namespace {

FakeDevice& device(const char* called) {
  FakeDevice& device = FakeDevice::instance();
  device.count(called);
  return device;
}

abi::Result answer(const char* called) {
  const abi::Result refused = device(called).refuses;
  return refused;
}

abi::Result allocate(const char* called, void** out, std::size_t bytes) {
  FakeDevice& from = device(called);
  *out = from.allocate(bytes);
  if (*out != nullptr) return abi::kSuccess;
  const abi::Result refused = from.refuses;
  return refused == abi::kSuccess ? abi::kOutOfMemory : refused;
}

}  // namespace

#define FAKE extern "C" __attribute__((visibility("default")))

FAKE abi::Result sanitizerSubscribe(abi::Subscriber* out, abi::Callback callback, void* user) {
  return device("sanitizerSubscribe").subscribe(out, callback, user);
}
FAKE abi::Result sanitizerUnsubscribe(abi::Subscriber) { return device("sanitizerUnsubscribe").unsubscribe(); }
FAKE abi::Result sanitizerEnableDomain(std::uint32_t on, abi::Subscriber, abi::Domain domain) {
  device("sanitizerEnableDomain").enable(domain, on != 0);
  return abi::kSuccess;
}
FAKE abi::Result sanitizerEnableAllDomains(std::uint32_t on, abi::Subscriber) {
  FakeDevice& of = device("sanitizerEnableAllDomains");
  for (const auto domain :
       {abi::Domain::kResource, abi::Domain::kSynchronize, abi::Domain::kLaunch, abi::Domain::kGraphs}) {
    of.enable(domain, on != 0);
  }
  return abi::kSuccess;
}
FAKE abi::Result sanitizerEnableCallback(std::uint32_t, abi::Subscriber, abi::Domain, std::uint32_t) {
  return answer("sanitizerEnableCallback");
}
FAKE abi::Result sanitizerGetCallbackState(std::uint32_t*, abi::Subscriber, abi::Domain, std::uint32_t) {
  return answer("sanitizerGetCallbackState");
}
FAKE abi::Result sanitizerGetResultString(abi::Result result, const char** text) {
  switch (result) {
    case abi::kSuccess:
      *text = "No error";
      break;
    case abi::kMaxLimitReached:
      *text = "The maximum limit is reached";
      break;
    case abi::kNotInitialized:
      *text = "Sanitizer is unable to initialize its connection to the CUDA driver";
      break;
    default:
      *text = "An error";
  }
  return abi::kSuccess;
}

FAKE abi::Result sanitizerAddPatches(const void* image, abi::Context context) {
  return device("sanitizerAddPatches")
      .add_patches(static_cast<const char*>(image), reinterpret_cast<FakeContext*>(context));
}
FAKE abi::Result sanitizerAddPatchesFromFile(const char*, abi::Context) {
  return answer("sanitizerAddPatchesFromFile");
}
FAKE abi::Result sanitizerPatchInstructions(abi::Point point, abi::Module module, const char* name) {
  return device("sanitizerPatchInstructions").ask_patch(point, reinterpret_cast<FakeModule*>(module), name);
}
FAKE abi::Result sanitizerPatchModule(abi::Module module) {
  FakeDevice& of = device("sanitizerPatchModule");
  auto* const known = reinterpret_cast<FakeModule*>(module);
  return of.is_module(known) ? of.patch(known, true) : abi::kInvalidParameter;
}
FAKE abi::Result sanitizerUnpatchModule(abi::Module module) {
  FakeDevice& of = device("sanitizerUnpatchModule");
  auto* const known = reinterpret_cast<FakeModule*>(module);
  return of.is_module(known) ? of.patch(known, false) : abi::kInvalidParameter;
}
FAKE abi::Result sanitizerSetCallbackData(abi::Function function, const void* data) {
  device("sanitizerSetCallbackData");
  reinterpret_cast<FakeFunction*>(function)->callback_data = data;
  return abi::kSuccess;
}
FAKE abi::Result sanitizerSetLaunchCallbackData(abi::LaunchHandle launch, abi::Function, abi::StreamHandle,
                                                const void* data) {
  const abi::Result refused = answer("sanitizerSetLaunchCallbackData");
  if (refused == abi::kSuccess) reinterpret_cast<FakeLaunch*>(launch)->callback_data = data;
  return refused;
}
FAKE abi::Result sanitizerSetDeviceGraphData(void*, abi::StreamHandle, const void*) {
  return answer("sanitizerSetDeviceGraphData");
}
FAKE abi::Result sanitizerGetFunctionPcAndSize(abi::Module module, const char* name, std::uint64_t* pc,
                                               std::uint64_t* size) {
  device("sanitizerGetFunctionPcAndSize");
  for (const auto& function : reinterpret_cast<FakeModule*>(module)->functions) {
    if (function->name != name) continue;
    *pc = function->pc;
    *size = 0x1000;
    return abi::kSuccess;
  }
  return abi::kInvalidParameter;
}
FAKE abi::Result sanitizerGetCallbackPcAndSize(abi::Context, const char*, std::uint64_t*, std::uint64_t*) {
  return answer("sanitizerGetCallbackPcAndSize");
}
FAKE abi::Result sanitizerGetFunctionLoadedStatus(abi::Function, std::int32_t* status) {
  *status = 2;
  return answer("sanitizerGetFunctionLoadedStatus");
}
FAKE abi::Result sanitizerGetCudaBarrierCount(abi::Function, std::uint32_t* count) {
  *count = 0;
  return answer("sanitizerGetCudaBarrierCount");
}

FAKE abi::Result sanitizerAlloc(abi::Context, void** out, std::size_t bytes) {
  return allocate("sanitizerAlloc", out, bytes);
}
FAKE abi::Result sanitizerAllocHost(abi::Context, void** out, std::size_t bytes) {
  return allocate("sanitizerAllocHost", out, bytes);
}
FAKE abi::Result sanitizerFree(abi::Context, void* memory) { return device("sanitizerFree").release(memory); }
FAKE abi::Result sanitizerFreeHost(abi::Context, void* memory) { return device("sanitizerFreeHost").release(memory); }
// As on a device, the source is read when the stream comes to it.
FAKE abi::Result sanitizerMemcpyHostToDeviceAsync(void* to, void* from, std::size_t bytes, abi::StreamHandle stream) {
  FakeDevice& of = device("sanitizerMemcpyHostToDeviceAsync");
  of.stream_of(stream)->queue([to, from, bytes] { std::memcpy(to, from, bytes); });
  return abi::kSuccess;
}
FAKE abi::Result sanitizerMemcpyDeviceToHost(void* to, void* from, std::size_t bytes, abi::StreamHandle stream) {
  device("sanitizerMemcpyDeviceToHost").stream_of(stream)->wait();
  std::memcpy(to, from, bytes);
  return abi::kSuccess;
}
FAKE abi::Result sanitizerMemset(void* memory, int value, std::size_t bytes, abi::StreamHandle stream) {
  FakeDevice& of = device("sanitizerMemset");
  of.stream_of(stream)->queue([memory, value, bytes] { std::memset(memory, value, bytes); });
  return abi::kSuccess;
}
FAKE abi::Result sanitizerStreamSynchronize(abi::StreamHandle stream) {
  device("sanitizerStreamSynchronize").stream_of(stream)->wait();
  return abi::kSuccess;
}
FAKE abi::Result sanitizerGetStream(abi::StreamHandle handle, abi::Stream* stream) {
  device("sanitizerGetStream");
  *stream = reinterpret_cast<abi::Stream>(handle);
  return abi::kSuccess;
}
FAKE abi::Result sanitizerGetStreamHandle(abi::Context, abi::Stream stream, abi::StreamHandle* handle) {
  device("sanitizerGetStreamHandle");
  *handle = reinterpret_cast<abi::StreamHandle>(stream);
  return abi::kSuccess;
}

// Exported by the vendor's library, declared in none of its headers; nobody here calls them.
FAKE int GetInitializationStatus() { return 0; }
FAKE void SanitizerDetach() {}
FAKE void* SanitizerGetProcAddress(const char*) { return nullptr; }
