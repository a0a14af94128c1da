// A client of CUPTI that does nothing: what any profiler pays for being called and for taking records. By
// bench/gpu/gpu_modes.py over ctypes; needs CUPTI at run time only.
#include <dlfcn.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "providers/nvidia/cupti_abi.h"

using namespace leadline::nvidia::cupti;  // NOLINT: one file, exported C names only

namespace {

using Attribute = Result (*)(std::uint32_t attribute, std::size_t* size, void* value);

struct Calls {
  Result (*subscribe)(Subscriber*, CallbackFunction, void*);
  Result (*unsubscribe)(Subscriber);
  Result (*enable_callback)(std::uint32_t, Subscriber, Domain, std::uint32_t);
  Result (*enable_domain)(std::uint32_t, Subscriber, Domain);
  Result (*callback_name)(Domain, std::uint32_t, const char**);
  Result (*register_callbacks)(BufferRequested, BufferCompleted);
  Result (*activity_enable)(Kind);
  Result (*activity_disable)(Kind);
  Result (*flush_all)(std::uint32_t);
  Result (*next_record)(std::uint8_t*, std::size_t, Record**);
  Result (*finalize)();
  Attribute set_attribute;
};

constexpr std::uint32_t kMostCallbacks = 2048;
constexpr std::uint32_t kZeroedBuffers = 5;  // CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER
constexpr std::size_t kAlignment = 4096;

Calls call{};
Subscriber subscriber = nullptr;
std::size_t buffer_bytes = std::size_t{1} << 20;
bool zeroed = false;
thread_local std::uint64_t called = 0;  // the launching thread's own
std::uint64_t records = 0;              // written by CUPTI's thread and in a flush, read when all has been flushed
std::uint32_t enabled[16];
int enabled_count = 0;

thread_local bool finalizing = false;

void on_call(void*, Domain domain, std::uint32_t, const void* data) {
  ++called;
  // CUPTI may be taken down safely at the end of a driver call.
  if (!finalizing || domain != Domain::kDriver || static_cast<const CallbackData*>(data)->site != Site::kExit) return;
  finalizing = false;
  call.finalize();
}

void on_requested(std::uint8_t** buffer, std::size_t* size, std::size_t* most) {
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(kAlignment, buffer_bytes));
  if (zeroed && *buffer != nullptr) std::memset(*buffer, 0, buffer_bytes);
  *size = buffer_bytes;
  *most = 0;
}

void on_completed(void*, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid) {
  Record* record = nullptr;
  while (valid > 0 && call.next_record(buffer, valid, &record) == kSuccess) ++records;
  std::free(buffer);
}

template <typename Function>
bool find(void* library, const char* name, Function*& into) {
  into = reinterpret_cast<Function*>(dlsym(library, name));
  return into != nullptr;
}

// As Leadline does it: inside a call that does nothing. Without it instrumentation stays for the turns that follow.
bool finalize() {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  int (*version)(int*) = nullptr;
  if (driver == nullptr || !find(driver, "cuDriverGetVersion", version)) return false;
  for (std::uint32_t cbid = 1; cbid < kMostCallbacks; ++cbid) {
    const char* name = nullptr;
    if (call.callback_name(Domain::kDriver, cbid, &name) != kSuccess || name == nullptr) continue;
    if (std::strcmp(name, "cuDriverGetVersion") != 0) continue;
    call.enable_callback(1, subscriber, Domain::kDriver, cbid);
    finalizing = true;
    int ignored = 0;
    version(&ignored);
    const bool done = !finalizing;
    finalizing = false;
    return done;
  }
  return false;
}

Result enable_launches(Domain domain) {
  for (std::uint32_t cbid = 1; cbid < kMostCallbacks; ++cbid) {
    const char* name = nullptr;
    if (call.callback_name(domain, cbid, &name) != kSuccess || name == nullptr) continue;
    if (std::strstr(name, "LaunchKernel") == nullptr && std::strstr(name, "GraphLaunch") == nullptr) continue;
    call.enable_callback(1, subscriber, domain, cbid);
  }
  return kSuccess;
}

}  // namespace

extern "C" {

// 0, or 1 where the library cannot be loaded, 2 where a function is missing.
__attribute__((visibility("default"))) int empty_load(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) return 1;
  const bool all = find(library, "cuptiSubscribe", call.subscribe) && find(library, "cuptiUnsubscribe", call.unsubscribe) &&
                   find(library, "cuptiEnableCallback", call.enable_callback) &&
                   find(library, "cuptiEnableDomain", call.enable_domain) &&
                   find(library, "cuptiGetCallbackName", call.callback_name) &&
                   find(library, "cuptiActivityRegisterCallbacks", call.register_callbacks) &&
                   find(library, "cuptiActivityEnable", call.activity_enable) &&
                   find(library, "cuptiActivityDisable", call.activity_disable) &&
                   find(library, "cuptiActivityFlushAll", call.flush_all) &&
                   find(library, "cuptiActivityGetNextRecord", call.next_record) &&
                   find(library, "cuptiFinalize", call.finalize);
  find(library, "cuptiActivitySetAttribute", call.set_attribute);
  return all ? 0 : 2;
}

// `runtime`, `driver`: 0 no callbacks, 1 those of launches, 2 the whole domain. What CUPTI answered, 0 for success.
__attribute__((visibility("default"))) int empty_start(int runtime, int driver, const std::uint32_t* kinds, int count,
                                                       std::size_t bytes, int zeroes) {
  if (bytes > 0) buffer_bytes = bytes;
  zeroed = zeroes != 0;
  called = 0;
  records = 0;
  enabled_count = 0;
  Result result = call.subscribe(&subscriber, on_call, nullptr);
  if (result != kSuccess) return result;
  const int wanted[] = {driver, runtime};
  const Domain domains[] = {Domain::kDriver, Domain::kRuntime};
  for (int index = 0; index < 2; ++index) {
    if (wanted[index] == 1) enable_launches(domains[index]);
    if (wanted[index] == 2) call.enable_domain(1, subscriber, domains[index]);
  }
  if (count == 0) return kSuccess;
  result = call.register_callbacks(on_requested, on_completed);
  if (call.set_attribute != nullptr) {
    std::uint8_t value = zeroed ? 1 : 0;
    std::size_t size = sizeof value;
    call.set_attribute(kZeroedBuffers, &size, &value);
  }
  for (int index = 0; index < count && result == kSuccess; ++index) {
    result = call.activity_enable(static_cast<Kind>(kinds[index]));
    if (result == kSuccess) enabled[enabled_count++] = kinds[index];
  }
  return result;
}

// With all work done. Callbacks of this thread and records go into the two; 1 where nothing of CUPTI stays in the process.
__attribute__((visibility("default"))) int empty_stop(std::uint64_t* callbacks, std::uint64_t* taken, int leave) {
  for (int index = 0; index < enabled_count; ++index) call.activity_disable(static_cast<Kind>(enabled[index]));
  if (enabled_count > 0) call.flush_all(kFlushForced);
  call.enable_domain(0, subscriber, Domain::kDriver);
  call.enable_domain(0, subscriber, Domain::kRuntime);
  *callbacks = called;
  *taken = records;
  if (leave == 0 && finalize()) return 1;
  call.unsubscribe(subscriber);
  return 0;
}

}  // extern "C"
