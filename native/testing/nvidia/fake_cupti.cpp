// The fake CUPTI: the names of majors 12 and 13, their refusals and their record sizes, over the fake GPU.
#include <chrono>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <thread>

#include "testing/nvidia/fake_gpu.h"

using namespace leadline::testing;  // NOLINT: one file, exported C names only

extern "C" FakeGpu* fake_gpu();

namespace {

cupti::Result checked() {
  FakeGpu& gpu = *fake_gpu();
  const std::lock_guard lock(gpu.mutex);
  if (gpu.finalized > 0 && !gpu.subscribed) ++gpu.calls_after_finalize;
  return cupti::kSuccess;
}

cupti::Result subscribe(cupti::Subscriber* subscriber, cupti::CallbackFunction callback, void* user, bool shared) {
  FakeGpu& gpu = *fake_gpu();
  const std::lock_guard lock(gpu.mutex);
  if (gpu.subscribe_result != cupti::kSuccess) return gpu.subscribe_result;
  if (gpu.subscribed || (!gpu.holder.empty() && !(gpu.holder_shares && shared)))
    return cupti::kMultipleSubscribersNotSupported;
  gpu.subscribed = reinterpret_cast<cupti::Subscriber>(&gpu);
  gpu.subscribed_shared = shared;
  gpu.callback = callback;
  gpu.callback_user = user;
  gpu.finalized = 0;
  *subscriber = gpu.subscribed;
  return cupti::kSuccess;
}

cupti::Result enable_kind(cupti::Kind kind) {
  FakeGpu& gpu = *fake_gpu();
  const std::lock_guard lock(gpu.mutex);
  if (gpu.activity_result != cupti::kSuccess) return gpu.activity_result;
  gpu.kinds.insert(kind);
  return cupti::kSuccess;
}

cupti::Result disable_kind(cupti::Kind kind) {
  FakeGpu& gpu = *fake_gpu();
  const std::lock_guard lock(gpu.mutex);
  gpu.kinds.erase(kind);
  return checked();
}

cupti::Result next_record(std::uint8_t* buffer, std::size_t bytes, cupti::Record** record) {
  std::uint8_t* at =
      *record ? reinterpret_cast<std::uint8_t*>(*record) + fake_gpu()->record_size((*record)->kind) : buffer;
  if (at >= buffer + bytes) return cupti::kMaxLimitReached;
  *record = reinterpret_cast<cupti::Record*>(at);
  return cupti::kSuccess;
}

cupti::Result take_dropped(std::size_t* dropped) {
  FakeGpu& gpu = *fake_gpu();
  const std::lock_guard lock(gpu.mutex);
  *dropped = gpu.dropped;
  gpu.dropped = 0;
  return cupti::kSuccess;
}

bool has_v2_activity() { return fake_gpu()->cupti_version >= 130300; }

}  // namespace

extern "C" {

cupti::Result cuptiGetVersion(std::uint32_t* version) {
  *version = fake_gpu()->cupti_version;
  return cupti::kSuccess;
}
cupti::Result cuptiGetResultString(cupti::Result result, const char** text) {
  *text = result == cupti::kMultipleSubscribersNotSupported ? "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"
                                                            : "CUPTI_ERROR_FAKE";
  return cupti::kSuccess;
}
cupti::Result cuptiGetCallbackName(cupti::Domain domain, std::uint32_t cbid, const char** name) {
  *name = fake_gpu()->names_work ? callback_name(domain, cbid) : nullptr;
  return *name ? cupti::kSuccess : cupti::kInvalidParameter;
}
cupti::Result cuptiSubscribe(cupti::Subscriber* subscriber, cupti::CallbackFunction callback, void* user) {
  return subscribe(subscriber, callback, user, false);
}
cupti::Result cuptiSubscribe_v2(cupti::Subscriber* subscriber, cupti::CallbackFunction callback, void* user,
                                cupti::SubscriberParams* params) {
  const FakeGpu& gpu = *fake_gpu();
  if (gpu.cupti_version < cupti::kVersion13_0) return cupti::kNotSupported;
  const std::size_t wanted = gpu.cupti_version >= cupti::kVersion13_2 ? 40 : 32;
  if (params && params->struct_size != wanted) return cupti::kInvalidParameter;
  const bool shared = params && wanted == 40 && params->allow_multiple != 0;
  const cupti::Result result = subscribe(subscriber, callback, user, shared);
  if (params && params->holder && !gpu.holder.empty()) {
    std::snprintf(params->holder, params->holder_size, "%s", gpu.holder.c_str());
  }
  return result;
}
cupti::Result cuptiUnsubscribe(cupti::Subscriber) {
  FakeGpu& gpu = *fake_gpu();
  const std::lock_guard lock(gpu.mutex);
  gpu.subscribed = nullptr;
  gpu.callback = nullptr;
  gpu.enabled.clear();
  return cupti::kSuccess;
}
cupti::Result cuptiEnableCallback(std::uint32_t on, cupti::Subscriber, cupti::Domain domain, std::uint32_t cbid) {
  fake_gpu()->enable(domain, cbid, on != 0);
  return cupti::kSuccess;
}
cupti::Result cuptiEnableDomain(std::uint32_t on, cupti::Subscriber, cupti::Domain domain) {
  fake_gpu()->enable_domain(domain, on != 0);
  return cupti::kSuccess;
}
cupti::Result cuptiActivityRegisterCallbacks(cupti::BufferRequested requested, cupti::BufferCompleted completed) {
  FakeGpu& gpu = *fake_gpu();
  const std::lock_guard lock(gpu.mutex);
  gpu.requested = requested;
  gpu.completed = completed;
  return cupti::kSuccess;
}
cupti::Result cuptiActivityRegisterCallbacks_v2(cupti::Subscriber, cupti::BufferRequestedV2 requested,
                                                cupti::BufferCompletedV2 completed) {
  if (!has_v2_activity()) return cupti::kNotSupported;
  FakeGpu& gpu = *fake_gpu();
  const std::lock_guard lock(gpu.mutex);
  gpu.requested_v2 = requested;
  gpu.completed_v2 = completed;
  return cupti::kSuccess;
}
cupti::Result cuptiActivityEnable(cupti::Kind kind) { return enable_kind(kind); }
cupti::Result cuptiActivityEnable_v2(cupti::Subscriber, cupti::Kind kind, void*) { return enable_kind(kind); }
cupti::Result cuptiActivityDisable(cupti::Kind kind) { return disable_kind(kind); }
cupti::Result cuptiActivityDisable_v2(cupti::Subscriber, cupti::Kind kind, void*) { return disable_kind(kind); }
cupti::Result cuptiActivityFlushAll(std::uint32_t flag) {
  fake_gpu()->called("cuptiActivityFlushAll");
  checked();
  fake_gpu()->flush(flag != 0);
  return cupti::kSuccess;
}
// As CUPTI does it: a thread of its own, which tells nobody and answers to no call.
cupti::Result cuptiActivityFlushPeriod(std::uint32_t milliseconds) {
  FakeGpu& gpu = *fake_gpu();
  if (!gpu.flushes_by_itself) return cupti::kNotSupported;
  gpu.flush_period_ms = milliseconds;
  static std::once_flag once;
  std::call_once(once, [&gpu] {
    std::thread([&gpu] {
      for (auto last = std::chrono::steady_clock::now();;) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        const std::uint32_t period = gpu.flush_period_ms;
        const auto now = std::chrono::steady_clock::now();
        if (period == 0 || now - last < std::chrono::milliseconds(period)) continue;
        last = now;
        gpu.flush(false);
      }
    }).detach();
  });
  return cupti::kSuccess;
}
cupti::Result cuptiActivityGetNextRecord(std::uint8_t* buffer, std::size_t bytes, cupti::Record** record) {
  return next_record(buffer, bytes, record);
}
cupti::Result cuptiActivityGetNextRecord_v2(cupti::Subscriber, std::uint8_t* buffer, std::size_t bytes,
                                            cupti::Record** record) {
  return next_record(buffer, bytes, record);
}
cupti::Result cuptiActivityGetNumDroppedRecords(void*, std::uint32_t, std::size_t* dropped) {
  return take_dropped(dropped);
}
cupti::Result cuptiActivityGetNumDroppedRecords_v2(cupti::Subscriber, void*, std::uint32_t, std::size_t* dropped) {
  return take_dropped(dropped);
}
cupti::Result cuptiActivityRegisterTimestampCallback(cupti::Timestamp timestamp) {
  FakeGpu& gpu = *fake_gpu();
  const std::lock_guard lock(gpu.mutex);
  gpu.timestamp = timestamp;
  gpu.timestamp_epoch_ns = static_cast<std::int64_t>(timestamp()) - gpu.tick(0);
  return cupti::kSuccess;
}
cupti::Result cuptiActivitySetAttribute(cupti::Attribute attribute, std::size_t*, void* value) {
  if (attribute != cupti::Attribute::kZeroedBuffers) return cupti::kInvalidParameter;
  fake_gpu()->buffers.wants_zeros = *static_cast<std::uint8_t*>(value) != 0;
  return cupti::kSuccess;
}
cupti::Result cuptiGetTimestamp(std::uint64_t* timestamp) {
  *timestamp = static_cast<std::uint64_t>(fake_gpu()->tick(0) + fake_gpu()->epoch());
  return cupti::kSuccess;
}
cupti::Result cuptiGetDeviceId(void* context, std::uint32_t* device) {
  *device = static_cast<std::uint32_t>(static_cast<FakeContext*>(context)->device);
  return cupti::kSuccess;
}
cupti::Result cuptiGetStreamIdEx(void*, void* stream, std::uint8_t per_thread, std::uint32_t* id) {
  *id = stream ? static_cast<FakeStream*>(stream)->id : (per_thread != 0 ? 2 : 0);
  return cupti::kSuccess;
}
cupti::Result cuptiGetGraphNodeId(void* node, std::uint64_t* id) {
  *id = static_cast<FakeGraphNode*>(node)->id;
  return cupti::kSuccess;
}
cupti::Result cuptiGetGraphId(void*, std::uint32_t* id) {
  *id = 1;
  return cupti::kSuccess;
}
cupti::Result cuptiFinalize() {
  FakeGpu& gpu = *fake_gpu();
  const std::lock_guard lock(gpu.mutex);
  ++gpu.finalized;
  gpu.finalized_inside_call = ApiScope::inside();
  gpu.subscribed = nullptr;
  gpu.callback = nullptr;
  gpu.enabled.clear();
  gpu.kinds.clear();
  gpu.requested = nullptr;
  gpu.completed = nullptr;
  gpu.requested_v2 = nullptr;
  gpu.completed_v2 = nullptr;
  return cupti::kSuccess;
}

}  // extern "C"
