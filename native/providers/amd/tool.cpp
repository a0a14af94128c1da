#include "providers/amd/tool.h"

#include <atomic>
#include <cstring>
#include <new>

#include "gpu/in_callback.h"
#include "gpu/measure.h"
#include "providers/amd/chips.h"
#include "providers/amd/correlation.h"
#include "providers/amd/measuring.h"

namespace leadline::amd {
namespace {

using InCallback = gpu::InCallback<Measuring>;

std::atomic<Tool*> g_known{nullptr};
std::atomic<bool> g_fork_untold{false};

constexpr std::size_t kBufferBytes = 8u << 20;
constexpr std::size_t kWatermark = kBufferBytes / 4;  // delivered when so full, else when asked for

struct Told {
  std::int32_t operation;
  sdk::Phase phase;
  const void* payload;
};

// The same bytes by the layout of releases before 1.0.
sdk::OldCallbackRecord as_old(const sdk::CallbackRecord& record) noexcept {
  sdk::OldCallbackRecord old;
  std::memcpy(&old, &record, sizeof old);
  return old;
}

// What a callback of `kind` was told; false where it is of neither of the layouts that are known.
bool read(const sdk::CallbackRecord& record, std::int32_t kind, Told* told) noexcept {
  if (record.kind == kind) {
    *told = {record.operation, record.phase, record.payload};
  } else {
    const sdk::OldCallbackRecord old = as_old(record);
    if (old.kind != kind) return false;
    *told = {old.operation, old.phase, old.payload};
  }
  return told->payload != nullptr;
}

std::int32_t kind_of(void* data) noexcept { return static_cast<std::int32_t>(reinterpret_cast<std::intptr_t>(data)); }
void* as_data(std::int32_t kind) noexcept { return reinterpret_cast<void*>(static_cast<std::intptr_t>(kind)); }

void tell_of_fork(std::int32_t operation) noexcept {
  const HipCallKind* kind = Tool::instance().names().calls.find(operation);
  if (kind == nullptr) return;
  switch (kind->kind) {
    case LEADLINE_GPU_LAUNCH:
    case LEADLINE_GPU_COPY:
    case LEADLINE_GPU_SET:
    case LEADLINE_GPU_GRAPH_LAUNCH:
      if (g_fork_untold.exchange(false, std::memory_order_relaxed))
        gpu::count_loss(LossKind::kProviderUnavailable, 1, Tool::kForked);
      break;
    default:
      break;
  }
}

void on_hip(sdk::CallbackRecord record, sdk::UserData*, void* data) {
  const InCallback self;
  const bool untold = !self && g_fork_untold.load(std::memory_order_relaxed);
  Told told;
  if ((!self && !untold) || !read(record, kind_of(data), &told)) return;
  if (untold) return tell_of_fork(told.operation);
  self->start_thread();
  self->callbacks().hip(told.operation, told.phase, *static_cast<const sdk::HipCall*>(told.payload));
}

// Of RCCL and HSA. Kinds of HSA have numbers as low as phases, so the release tells the layout.
template <const HipCalls SdkNames::*kCalls>
void on_library(sdk::CallbackRecord record, sdk::UserData*, void*) {
  const InCallback self;
  if (!self) return;
  const sdk::OldCallbackRecord old = as_old(record);
  const bool is_old = Tool::instance().has_old_layout();
  const Told told =
      is_old ? Told{old.operation, old.phase, old.payload} : Told{record.operation, record.phase, record.payload};
  if (told.payload == nullptr) return;
  self->start_thread();
  self->callbacks().library(Tool::instance().names().*kCalls, told.operation, told.phase,
                            *static_cast<const sdk::HipCall*>(told.payload));
}

void on_marker(sdk::CallbackRecord record, sdk::UserData*, void* data) {
  const InCallback self;
  Told told;
  if (self && read(record, kind_of(data), &told)) {
    self->callbacks().marker(told.operation, told.phase, *static_cast<const sdk::MarkerCall*>(told.payload));
  }
}

void on_code(sdk::CallbackRecord record, sdk::UserData*, void* data) {
  Told told;
  if (!read(record, kind_of(data), &told) || told.phase != sdk::Phase::kEnter) return;
  PcSampler* const sampler = Tool::instance().sampler();
  if (told.operation == sdk::kCodeObjectLoad && sampler != nullptr) {
    sampler->code_loaded(*static_cast<const sdk::CodeObjectLoad*>(told.payload));
  }
  if (told.operation != kKernelSymbol) return;
  if (sampler != nullptr) sampler->kernel_loaded(*static_cast<const sdk::KernelSymbol*>(told.payload));
  try {
    if (Tool::instance().kernels().put(*static_cast<const sdk::KernelSymbol*>(told.payload))) return;
  } catch (...) {
  }
  gpu::count_loss(LossKind::kInternalError, 1, "There was no room for the names of more kernels.");
}

void on_stream(sdk::CallbackRecord record, sdk::UserData*, void* data) {
  Told told;
  if (!read(record, kind_of(data), &told) || told.operation != kStreamCreate) return;
  const auto& stream = *static_cast<const sdk::StreamCall*>(told.payload);
  Tool::instance().streams().set(stream.value, stream.stream);
}

int on_request(std::uint64_t, sdk::ContextId, std::int32_t kind, std::int32_t, std::uint64_t, sdk::UserData* external,
               void*) {
  const InCallback self;
  external->value = self ? self->callbacks().request(kind) : Correlation::kNotMeasured;
  return 0;
}

void on_buffer(sdk::ContextId, sdk::BufferId, sdk::RecordHeader** headers, std::size_t count, void*,
               std::uint64_t dropped) {
  const InCallback self;
  if (self) self->fold(headers, count, dropped);
}

void on_samples(sdk::ContextId, sdk::BufferId, sdk::RecordHeader** headers, std::size_t count, void*,
                std::uint64_t dropped) {
  if (PcSampler* const sampler = Tool::instance().sampler()) sampler->take(headers, count, dropped);
}

void on_counters(sdk::ContextId, sdk::BufferId, sdk::RecordHeader** headers, std::size_t count, void*,
                 std::uint64_t dropped) {
  if (DispatchCounter* const counters = Tool::instance().counters()) counters->take(headers, count, dropped);
}

}  // namespace

Tool& Tool::instance() {
  static Tool& made = []() -> Tool& {  // never destroyed: the SDK may call until the very end
    Tool* const tool = new Tool;
    g_known.store(tool, std::memory_order_release);
    return *tool;
  }();
  return made;
}

Tool* Tool::known() noexcept { return g_known.load(std::memory_order_acquire); }

void Tool::tell_at_first_work() noexcept { g_fork_untold.store(true, std::memory_order_relaxed); }

sdk::ToolConfiguration* Tool::configure(std::uint32_t, const char*, std::uint32_t, sdk::ClientId* client) {
  Tool& tool = instance();
  if (tool.configured()) return nullptr;  // by another copy of the SDK
  if (client && client->size == sizeof(sdk::ClientId)) {
    client->name = "Leadline";
  } else if (client && client->size == 0) {
    reinterpret_cast<sdk::OldClientId*>(client)->name = "Leadline";
  }
  static sdk::ToolConfiguration configuration{
      sizeof(sdk::ToolConfiguration),
      [](sdk::ClientFinalize, void*) { return instance().initialize(); },
      [](void*) { Measuring::sdk_is_ending(); },
      nullptr,
  };
  return &configuration;
}

int Tool::initialize() try {
  std::string error;
  if (set_up(&error)) {
    configured_.store(true, std::memory_order_release);
    if (auto* told = told_.load(std::memory_order_acquire)) told();
    return 0;
  }
  const std::lock_guard lock(mutex_);
  failure_ = std::move(error);
  return -1;
} catch (...) {
  return -1;
}

std::string Tool::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

bool Tool::set_up(std::string* error) {
  if (!library_) {
    library_ = SdkLibrary::open({}, error);  // the copy that calls
    if (!library_) return false;
  }
  const SdkFunctions& sdk = call();
  constexpr std::uint32_t kNextMajor = 20000;
  if (library_->version() >= kNextMajor) {
    *error = "rocprofiler-sdk " + sdk_version_name(library_->version()) + " (" + library_->path() +
             ") is of a later major release than this Leadline knows (0 and 1); install a newer Leadline";
    return false;
  }
  std::string missing;
  if (!names_.load(sdk, &missing)) {
    *error = "rocprofiler-sdk " + sdk_version_name(library_->version()) + " (" + library_->path() +
             ") does not offer " + missing;
    return false;
  }
  const auto check = [&](sdk::Status status, const char* doing) {
    if (status == sdk::kSuccess) return true;
    *error = std::string("rocprofiler-sdk refuses ") + doing + " (" + library_->describe(status) + ")";
    return false;
  };
  if (!check(sdk.create_context(&code_context_), "a context")) return false;
  if (!check(sdk.trace_callbacks(code_context_, names_.code_object, nullptr, 0, on_code, as_data(names_.code_object)),
             "callbacks of loaded code"))
    return false;
  if (names_.stream > sdk::kHighestPhase) {
    // Left out by some releases, which streams are then numbered without.
    sdk.trace_callbacks(code_context_, names_.stream, &kStreamCreate, 1, on_stream, as_data(names_.stream));
  }
  if (!check(sdk.create_context(&context_), "a context")) return false;
  const std::vector<std::int32_t>& followed = names_.calls.followed();
  if (!check(sdk.trace_callbacks(context_, names_.hip, followed.data(), followed.size(), on_hip, as_data(names_.hip)),
             "callbacks of HIP calls"))
    return false;
  old_layout_ = library_->version() < 10000;
  const auto follow = [&](std::int32_t kind, const HipCalls& calls, sdk::ApiCallback callback) {
    const std::vector<std::int32_t>& all = calls.followed();
    if (!all.empty()) sdk.trace_callbacks(context_, kind, all.data(), all.size(), callback, nullptr);
  };
  follow(names_.rccl, names_.rccl_calls, on_library<&SdkNames::rccl_calls>);
  follow(names_.hsa, names_.hsa_calls, on_library<&SdkNames::hsa_calls>);
  follow(names_.hsa_amd, names_.hsa_amd_calls, on_library<&SdkNames::hsa_amd_calls>);
  if (names_.marker > sdk::kHighestPhase && names_.markers.push != kNoNumber) {
    const std::int32_t markers[] = {names_.markers.push, names_.markers.pop, names_.markers.start, names_.markers.stop};
    const bool by_number = names_.markers.start != kNoNumber && names_.markers.stop != kNoNumber;
    sdk.trace_callbacks(context_, names_.marker, markers, by_number ? 4 : 2, on_marker, as_data(names_.marker));
  }
  const std::int32_t requests[] = {names_.dispatch_request, names_.copy_request};
  const std::size_t request_count = names_.copy_request == kNoNumber ? 1 : 2;
  if (!check(sdk.request_correlation(context_, requests, request_count, on_request, nullptr),
             "requests for correlation ids"))
    return false;
  if (!check(sdk.create_buffer(context_, kBufferBytes, kWatermark, sdk::BufferPolicy::kLossless, on_buffer, nullptr,
                               &buffer_),
             "a buffer"))
    return false;
  if (!check(sdk.trace_buffer(context_, names_.dispatch, nullptr, 0, buffer_), "records of kernels")) return false;
  if (names_.copy != kNoNumber) sdk.trace_buffer(context_, names_.copy, nullptr, 0, buffer_);
  if (names_.scratch != kNoNumber && !old_layout_) sdk.trace_buffer(context_, names_.scratch, nullptr, 0, buffer_);
  if (sdk::CallbackThread thread; sdk.create_thread && sdk.create_thread(&thread) == sdk::kSuccess && sdk.assign_thread)
    sdk.assign_thread(buffer_, thread);
  if (wanted_samples_) {
    auto sampler = std::make_unique<PcSampler>(*wanted_samples_);
    sampler->set_up(sdk, agents(), on_samples);
    sampler_.store(sampler.release(), std::memory_order_release);
  }
  if (!wanted_counters_.empty()) {
    auto counters = std::make_unique<DispatchCounter>(wanted_counters_);
    counters->set_up(sdk, library_->version(), agents(), on_counters);
    counters_.store(counters.release(), std::memory_order_release);
  }
  return check(sdk.start_context(code_context_), "to start") && check(sdk.start_context(context_), "to start");
}

const gpu::Vendor& Tool::vendor() const noexcept { return kVendor; }

bool Tool::force(const std::vector<std::string>& candidates, std::string* error, bool* missing) {
  *missing = false;
  if (configured()) return true;
  std::string why;
  library_ = SdkLibrary::open(candidates, &why);
  if (!library_) {
    *missing = true;
    *error = "rocprofiler-sdk was not found (" + why + "); install ROCm 6.2 or later, or its package rocprofiler-sdk";
    return false;
  }
  late_ = hip_is_loaded();
  const sdk::Status status = call().force_configure(&Tool::configure);
  if (configured()) return true;
  if (status == sdk::kConfigurationLocked) {
    *error =
        "rocprofiler-sdk has configured itself before Leadline was loaded, so it takes no more tools; start the "
        "program with `leadline run`";
  } else if (const std::string said = failure(); !said.empty()) {
    *error = said;
  } else {
    *error = "rocprofiler-sdk " + sdk_version_name(library_->version()) + " does not take Leadline as its tool (" +
             library_->describe(status) + ")";
  }
  return false;
}

const Agents& Tool::agents() {
  struct Asked {
    Agents* agents;
    bool no_memory = false;
  };
  const std::lock_guard lock(agents_mutex_);
  Asked asked{&agents_};
  call().agents(
      sdk::kAgentVersion,
      [](std::int32_t, const void** agents, std::size_t count, void* data) -> sdk::Status {
        auto& to = *static_cast<Asked*>(data);
        try {
          to.agents->load(agents, count, Visibility::of_environment());
        } catch (...) {
          to.no_memory = true;  // nothing is thrown through the SDK
        }
        return sdk::kSuccess;
      },
      offsetof(sdk::Agent, visibility), &asked);
  if (asked.no_memory) throw std::bad_alloc();
  return agents_;
}

void Tool::want_samples(const PcSamplingOptions& options) {
  const std::lock_guard lock(mutex_);
  if (!configured()) wanted_samples_ = options;
}

void Tool::want_counters(const std::vector<std::string>& metrics) {
  const std::lock_guard lock(mutex_);
  if (!configured()) wanted_counters_ = metrics;
}

void Tool::flush() noexcept { call().flush_buffer(buffer_); }

}  // namespace leadline::amd

// What libleadline_inject.so hands on when the SDK has loaded it (ROCP_TOOL_LIBRARIES), while HIP starts.
extern "C" LEADLINE_EXPORT void* leadline_rocprofiler_configure(std::uint32_t version, const char* description,
                                                                std::uint32_t priority, void* client) {
  using namespace leadline::amd;
  return Tool::configure(version, description, priority, static_cast<sdk::ClientId*>(client));
}
