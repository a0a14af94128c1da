#include "providers/nvidia/subscription.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <string_view>

#include "leadline/monitor.h"
#include "providers/nvidia/call_trace.h"

namespace leadline::nvidia {
namespace {

struct KindName {
  cupti::Kind kind;
  const char* name;
};

// Subscriber-aware buffer callbacks carry one more argument, which Leadline does not need; the plain ones are kept here
// because CUPTI gives no user pointer to either.
cupti::BufferRequested plain_requested = nullptr;
cupti::BufferCompleted plain_completed = nullptr;

void requested_v2(std::uint8_t** buffer, std::size_t* size, std::size_t* most, void*) {
  plain_requested(buffer, size, most);
}
void completed_v2(std::uint8_t* buffer, std::size_t size, std::size_t valid, void*) {
  plain_completed(nullptr, 0, buffer, size, valid);
}

constexpr std::array kResources{cupti::Resource::kContextCreated,
                                cupti::Resource::kContextDestroyStarting,
                                cupti::Resource::kModuleLoaded,
                                cupti::Resource::kModuleUnloadStarting,
                                cupti::Resource::kGraphDestroyStarting,
                                cupti::Resource::kGraphNodeCreated,
                                cupti::Resource::kGraphNodeDestroyStarting,
                                cupti::Resource::kGraphExecDestroyStarting,
                                cupti::Resource::kGraphNodeCloned};

}  // namespace

LaunchCalls launch_calls_asked() noexcept {
  const char* const asked = std::getenv("LEADLINE_CUPTI_LAUNCHES");  // NOLINT(concurrency-mt-unsafe): read once
  return asked != nullptr && std::string_view(asked) == "both" ? LaunchCalls::kBoth : LaunchCalls::kDriver;
}

const char* to_string(SubscriptionMode mode) noexcept {
  switch (mode) {
    case SubscriptionMode::kSingle:
      return "single";
    case SubscriptionMode::kShared:
      return "shared";
    default:
      return "none";
  }
}

cupti::Result Subscription::subscribe(SubscriptionMode mode, cupti::CallbackFunction callback, void* user) {
  const CuptiFunctions& call = library_.call();
  if (!call.subscribe_v2 || library_.version() < cupti::kVersion13_0)
    return call.subscribe(&subscriber_, callback, user);
  std::array<char, cupti::kHolderNameSize> holder{};
  cupti::SubscriberParams params{};
  params.struct_size =
      library_.version() >= cupti::kVersion13_2 ? sizeof(cupti::SubscriberParams) : cupti::kSubscriberParamsSize13_0;
  params.name = "Leadline";
  params.holder = holder.data();
  params.holder_size = holder.size();
  params.allow_multiple = mode == SubscriptionMode::kShared ? 1 : 0;
  cupti::Result result = call.subscribe_v2(&subscriber_, callback, user, &params);
  // A later version may want a larger structure than the one known here; the first call is still there then.
  if (result == cupti::kInvalidParameter && mode == SubscriptionMode::kSingle) {
    result = call.subscribe(&subscriber_, callback, user);
  }
  holder.back() = '\0';
  if (holder[0] != '\0') holder_ = holder.data();
  return result;
}

bool Subscription::open(bool want_shared, cupti::CallbackFunction callback, void* user) {
  cupti::Result result = cupti::kNotSupported;
  if (want_shared && library_.has_shared_subscription()) {
    result = subscribe(SubscriptionMode::kShared, callback, user);
    if (result == cupti::kSuccess) mode_ = SubscriptionMode::kShared;
  }
  if (mode_ == SubscriptionMode::kNone) {
    result = subscribe(SubscriptionMode::kSingle, callback, user);
    if (result == cupti::kSuccess) mode_ = SubscriptionMode::kSingle;
  }
  if (mode_ == SubscriptionMode::kNone) message_ = refusal(result);
  return mode_ != SubscriptionMode::kNone;
}

std::string Subscription::refusal(cupti::Result result) const {
  switch (result) {
    case cupti::kMultipleSubscribersNotSupported: {
      const std::string who = holder_.empty() ? "another tool" : "\"" + holder_ + "\"";
      return "GPU work is not measured because " + who +
             " holds CUPTI, which serves one tool at a time here; run without that tool, or keep it and read "
             "operators, "
             "Python and regions from this profile.";
    }
    case cupti::kInsufficientPrivileges:
    case cupti::kVirtualizedInsufficientPrivileges:
      return "GPU work is not measured because the driver does not permit profiling to this user; load the nvidia "
             "module "
             "with NVreg_RestrictProfilingToAdminUsers=0 or give the process CAP_SYS_ADMIN.";
    case cupti::kVirtualizedNotSupported:
      return "GPU work is not measured because this virtual GPU does not support profiling; ask the host's "
             "administrator to "
             "enable it for the vGPU profile.";
    case cupti::kNotInitialized:
    case cupti::kUnknown:
      return "GPU work is not measured because CUPTI " + cupti_version_name(library_.version()) + " (" +
             library_.path() +
             ") does not start with this driver; check that the nvidia-cuda-cupti package is not newer than the "
             "driver's CUDA.";
    default:
      return "GPU work is not measured because CUPTI refused the subscription (" + library_.describe(result) +
             "); `leadline doctor` shows the versions involved.";
  }
}

cupti::Result Subscription::enable(cupti::Kind kind) const noexcept {
  const CuptiFunctions& call = library_.call();
  return mode_ == SubscriptionMode::kShared ? call.activity_enable_v2(subscriber_, kind, nullptr)
                                            : call.activity_enable(kind);
}

cupti::Result Subscription::disable(cupti::Kind kind) const noexcept {
  const CuptiFunctions& call = library_.call();
  return mode_ == SubscriptionMode::kShared ? call.activity_disable_v2(subscriber_, kind, nullptr)
                                            : call.activity_disable(kind);
}

void Subscription::use_clock_of_monitor() {
  const CuptiFunctions& call = library_.call();
  if (call.register_timestamp == nullptr) return;
  call.register_timestamp([] { return static_cast<std::uint64_t>(leadline_monitor_now()); });
}

bool Subscription::start_activity(cupti::BufferRequested requested, cupti::BufferCompleted completed, bool whole_graphs,
                                  bool traces, std::optional<SampledRecords> sampled) {
  const CuptiFunctions& call = library_.call();
  plain_requested = requested;
  plain_completed = completed;
  traces_ = traces;
  // Else CUPTI fills each buffer with zeros in the launch that asks for it.
  if (std::uint8_t on = 1; call.set_attribute != nullptr && mode_ == SubscriptionMode::kSingle) {
    std::size_t size = sizeof on;
    call.set_attribute(cupti::Attribute::kZeroedBuffers, &size, &on);
  }
  cupti::Result result = mode_ == SubscriptionMode::kShared
                             ? call.register_callbacks_v2(subscriber_, requested_v2, completed_v2)
                             : call.register_callbacks(requested, completed);
  // With both on, launches of two programs on an H100 (CUPTI 13.0) did not return; Triton's Proton avoids it likewise.
  const cupti::Kind kernels = sampled ? cupti::Kind::kKernel : cupti::Kind::kConcurrentKernel;
  const bool none = sampled == SampledRecords::kNone;
  if (result == cupti::kSuccess && !none) result = enable(kernels);
  if (result != cupti::kSuccess) {
    message_ = refusal(result);
    return false;
  }
  if (none) return true;
  enabled_.push_back(kernels);
  if (sampled == SampledRecords::kKernels) return true;
  constexpr std::array<KindName, 5> wanted{{{cupti::Kind::kMemcpy, "copies"},
                                            {cupti::Kind::kMemcpyPeer, "copies between devices"},
                                            {cupti::Kind::kMemset, "sets"},
                                            {cupti::Kind::kSynchronization, "waits"},
                                            {cupti::Kind::kOverhead, "overhead"}}};
  const auto try_enable = [&](const KindName& wanted_kind) {
    if (enable(wanted_kind.kind) == cupti::kSuccess) {
      enabled_.push_back(wanted_kind.kind);
      if (wanted_kind.kind == cupti::Kind::kSynchronization) has_waits_ = true;
    } else {
      missing_kinds_ += (missing_kinds_.empty() ? "" : ", ") + std::string(wanted_kind.name);
    }
  };
  for (const KindName& kind : wanted) {
    const bool is_of_traces = kind.kind == cupti::Kind::kSynchronization || kind.kind == cupti::Kind::kOverhead;
    if (traces || !is_of_traces) try_enable(kind);
  }
  // With this kind on, CUPTI reports a replayed graph as one record and its kernels not at all.
  if (whole_graphs) try_enable({cupti::Kind::kGraphTrace, "graphs"});
  return true;
}

bool Subscription::enable_one(cupti::Domain domain, std::uint32_t cbid, bool on) const noexcept {
  return library_.call().enable_callback(on ? 1 : 0, subscriber_, domain, cbid) == cupti::kSuccess;
}

// What a run does not ask for costs it nothing: CUPTI calls back for what is enabled only.
bool Subscription::is_wanted(cupti::Domain domain, const ApiCall& call) const noexcept {
  if (!call.followed) return false;
  const bool is_of_traces = call.kind == LEADLINE_GPU_EVENT_RECORD || call.kind == LEADLINE_GPU_STREAM_WAIT;
  if (is_of_traces && !traces_) return false;
  return call.kind != LEADLINE_GPU_LAUNCH || domain == cupti::Domain::kDriver || follows_runtime_launches();
}

void Subscription::enable_callbacks() {
  for (const cupti::Domain domain : {cupti::Domain::kDriver, cupti::Domain::kRuntime}) {
    const std::vector<ApiCall>& calls = calls_.calls(domain);
    for (std::size_t cbid = 1; cbid < calls.size(); ++cbid) {
      if (is_wanted(domain, calls[cbid])) enable_one(domain, static_cast<std::uint32_t>(cbid), true);
    }
  }
  for (const cupti::Resource resource : kResources) {
    enable_one(cupti::Domain::kResource, static_cast<std::uint32_t>(resource), true);
  }
  constexpr std::uint32_t kFatalError = 1;
  enable_one(cupti::Domain::kState, kFatalError, true);
}

void Subscription::follow_runtime_launches() {
  launch_calls_.store(LaunchCalls::kBoth, std::memory_order_relaxed);
  const std::vector<ApiCall>& calls = calls_.calls(cupti::Domain::kRuntime);
  for (std::size_t cbid = 1; cbid < calls.size(); ++cbid) {
    if (calls[cbid].kind == LEADLINE_GPU_LAUNCH && calls[cbid].followed)
      enable_one(cupti::Domain::kRuntime, static_cast<std::uint32_t>(cbid), true);
  }
}

void Subscription::rest(bool on) {
  for (const cupti::Kind kind : enabled_) on ? disable(kind) : enable(kind);
  for (const cupti::Domain domain : {cupti::Domain::kDriver, cupti::Domain::kRuntime}) {
    const std::vector<ApiCall>& calls = calls_.calls(domain);
    for (std::size_t cbid = 1; cbid < calls.size(); ++cbid) {
      // Memory and graphs outlive the pause that they were made in, and are rare.
      const leadline_gpu_kind kind = calls[cbid].kind;
      const bool is_kept = kind == LEADLINE_GPU_ALLOC || kind == LEADLINE_GPU_FREE ||
                           kind == LEADLINE_GPU_GRAPH_CREATE || kind == LEADLINE_GPU_GRAPH_INSTANTIATE;
      // One by one: switching the whole domain off may take others' callbacks and records with it before 12.6.
      if (is_wanted(domain, calls[cbid]) && !is_kept) enable_one(domain, static_cast<std::uint32_t>(cbid), !on);
    }
  }
}

void Subscription::disable_callbacks() {
  const CuptiFunctions& call = library_.call();
  for (const cupti::Domain domain :
       {cupti::Domain::kDriver, cupti::Domain::kRuntime, cupti::Domain::kResource, cupti::Domain::kState}) {
    if (call.enable_domain) call.enable_domain(0, subscriber_, domain);
  }
}

void Subscription::stop_activity() {
  for (const cupti::Kind kind : enabled_) disable(kind);
  enabled_.clear();
}

void Subscription::close() {
  if (mode_ != SubscriptionMode::kNone) library_.call().unsubscribe(subscriber_);
  forget();
}

void Subscription::forget() noexcept {
  subscriber_ = nullptr;
  mode_ = SubscriptionMode::kNone;
  has_waits_ = false;
  enabled_.clear();
}

bool Subscription::flush_every(double seconds) const noexcept {
  const CuptiFunctions& call = library_.call();
  if (call.flush_period == nullptr) return false;
  const double milliseconds = std::clamp(seconds * 1e3, 0.0, double{UINT32_MAX});
  const auto period = static_cast<std::uint32_t>(std::ceil(milliseconds));
  return call.flush_period(period) == cupti::kSuccess;
}

cupti::Result Subscription::flush(bool forced) const noexcept {
  return traced("cuptiActivityFlushAll", library_.call().flush_all, forced ? cupti::kFlushForced : 0u);
}

cupti::Result Subscription::next_record(std::uint8_t* buffer, std::size_t bytes,
                                        cupti::Record** record) const noexcept {
  const CuptiFunctions& call = library_.call();
  return mode_ == SubscriptionMode::kShared ? call.next_record_v2(subscriber_, buffer, bytes, record)
                                            : call.next_record(buffer, bytes, record);
}

std::uint64_t Subscription::dropped_records(void* context, std::uint32_t stream) const noexcept {
  const CuptiFunctions& call = library_.call();
  std::size_t dropped = 0;
  if (mode_ == SubscriptionMode::kShared) {
    call.dropped_records_v2(subscriber_, context, stream, &dropped);
  } else if (call.dropped_records) {
    call.dropped_records(context, stream, &dropped);
  }
  return dropped;
}

}  // namespace leadline::nvidia
