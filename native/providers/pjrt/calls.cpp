#include "providers/pjrt/calls.h"

#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include "base/ids.h"
#include "gpu/in_callback.h"
#include "gpu/measure.h"
#include "providers/pjrt/runs.h"
#include "providers/pjrt/table.h"

namespace leadline::pjrt {
namespace {

using InCallback = gpu::InCallback<Measuring>;

struct Call {
  Slot slot;
  const char* name;  // null: not shown, only looked at
  leadline_gpu_kind kind;
};
constexpr std::array kCalls{
    Call{kEventAwait, "PJRT_Event_Await", LEADLINE_GPU_SYNC},
    Call{kClientCreate, "PJRT_Client_Create", LEADLINE_GPU_OTHER},
    Call{kClientCompile, "PJRT_Client_Compile", LEADLINE_GPU_OTHER},
    Call{kBufferFromHostBuffer, "PJRT_Client_BufferFromHostBuffer", LEADLINE_GPU_COPY},
    Call{kLoadedExecutableExecute, "PJRT_LoadedExecutable_Execute", LEADLINE_GPU_LAUNCH},
    Call{kExecutableDeserializeAndLoad, "PJRT_Executable_DeserializeAndLoad", LEADLINE_GPU_OTHER},
    Call{kLoadedExecutableDestroy, nullptr, LEADLINE_GPU_OTHER},
    Call{kBufferDestroy, nullptr, LEADLINE_GPU_FREE},
    Call{kBufferCopyToDevice, "PJRT_Buffer_CopyToDevice", LEADLINE_GPU_COPY},
    Call{kBufferToHostBuffer, "PJRT_Buffer_ToHostBuffer", LEADLINE_GPU_COPY},
    Call{kBufferCopyToMemory, "PJRT_Buffer_CopyToMemory", LEADLINE_GPU_COPY},
    Call{kBufferCopyRawToHost, "PJRT_Buffer_CopyRawToHost", LEADLINE_GPU_COPY},
    Call{kCopyToDeviceStreamAddChunk, "PJRT_CopyToDeviceStream_AddChunk", LEADLINE_GPU_COPY},
    Call{kTransferManagerTransferData, "PJRT_AsyncHostToDeviceTransferManager_TransferData", LEADLINE_GPU_COPY},
};

struct KeptErrno {
  ~KeptErrno() { errno = kept; }
  const int kept = errno;
};

void add(std::atomic<std::uint64_t>& counter, std::uint64_t more = 1) noexcept {
  counter.fetch_add(more, std::memory_order_relaxed);
}

std::int64_t bytes_of(const BufferFromHost& arguments) noexcept {
  constexpr std::size_t kMostDimensions = 64;
  if (arguments.dimension_count > kMostDimensions) return 0;
  std::int64_t bytes = element_bytes(arguments.type);
  for (std::size_t i = 0; i < arguments.dimension_count; ++i) {
    if (__builtin_mul_overflow(bytes, arguments.dimensions[i], &bytes)) return 0;
  }
  return bytes;
}

std::int32_t device_of_manager(std::size_t table, void* manager) noexcept {
  GetObject asked{{{sizeof(GetObject), nullptr}, manager}, nullptr};
  return manager != nullptr && ask(table, kTransferManagerDevice, &asked) ? number_of(table, asked.found) : -1;
}

struct Facts {
  std::int32_t device = -1;
  std::int64_t bytes = 0;
  std::int64_t begun_ns = 0;
};

// Before the call, while its arguments are what the caller gave.
Facts facts_of(std::size_t table, Slot slot, const Arguments* arguments) noexcept {
  switch (slot) {
    case kBufferFromHostBuffer: {
      const auto& from = *static_cast<const BufferFromHost*>(arguments);
      return {number_of(table, from.device), bytes_of(from)};
    }
    case kLoadedExecutableExecute:
      return {number_of(table, static_cast<const Execute*>(arguments)->device), 0};
    case kBufferToHostBuffer: {
      const auto& to = *static_cast<const ToHost*>(arguments);
      return {device_of_buffer(table, to.buffer), to.destination ? static_cast<std::int64_t>(to.bytes) : 0};
    }
    case kBufferCopyRawToHost: {
      const auto& to = *static_cast<const RawToHost*>(arguments);
      return {device_of_buffer(table, to.buffer), to.bytes};
    }
    case kBufferCopyToDevice:
    case kBufferCopyToMemory: {
      void* const buffer = static_cast<const OfBuffer*>(arguments)->buffer;
      return {device_of_buffer(table, buffer), size_of_buffer(table, buffer)};
    }
    case kCopyToDeviceStreamAddChunk: {
      const Chunk* const chunk = static_cast<const AddChunk*>(arguments)->chunk;
      return {-1, chunk != nullptr ? static_cast<std::int64_t>(chunk->bytes) : 0};
    }
    case kTransferManagerTransferData: {
      const auto& part = *static_cast<const TransferData*>(arguments);
      return {device_of_manager(table, part.object), part.bytes};
    }
    default:
      return {};
  }
}

// A copy to the host whose destination is null asks only how much room it needs.
bool is_question(Slot slot, const Arguments* arguments) noexcept {
  return slot == kBufferToHostBuffer && static_cast<const ToHost*>(arguments)->destination == nullptr;
}

void learn_platform(std::size_t table, const ClientCreate& made) noexcept {
  Followed& of = followed(table);
  PlatformName asked{{sizeof(PlatformName), nullptr}, made.client, nullptr, 0};
  if (made.client == nullptr || !ask(table, kClientPlatformName, &asked) || asked.name == nullptr) return;
  const std::string_view name(asked.name, asked.size);
  constexpr std::int32_t kCuda = 1;
  constexpr std::int32_t kHip = 2;
  constexpr std::int32_t kXla = 7;
  of.device_type.store(name == "cuda" ? kCuda : name == "rocm" ? kHip : kXla, std::memory_order_relaxed);
}

void emit(leadline_phase phase, const Call& call, const Facts& facts, const Followed& of, const void* token) noexcept {
  leadline_event event = leadline_event_of(LEADLINE_DOMAIN_GPU_API, phase);
  event.time_ns = leadline_monitor_now();
  event.token = token;
  leadline_gpu_api_event& api = event.of.gpu_api;
  api.name = call.name;
  api.kind = call.kind;
  api.device = facts.device;
  api.stream = -1;
  api.bytes = facts.bytes;
  api.awaits = -1;
  api.device_type = of.device_type.load(std::memory_order_relaxed);
  leadline_monitor_emit(&event);
}

void count(Measuring& measuring, const Call& call, const Facts& facts, bool failed) noexcept {
  add(measuring.calls);
  if (failed) return add(measuring.failed);
  if (call.slot == kLoadedExecutableExecute) add(measuring.executed);
  if (call.slot == kClientCompile || call.slot == kExecutableDeserializeAndLoad) add(measuring.compiled);
  if (facts.bytes <= 0) return;
  add(call.kind == LEADLINE_GPU_COPY ? measuring.copied_bytes : measuring.made_bytes,
      static_cast<std::uint64_t>(facts.bytes));
}

// What ends in the call: its place is known inside of it only.
void finish(const Call& call, Facts facts, std::size_t table, const Arguments* arguments, const void* token,
            bool failed) noexcept {
  const InCallback measuring;
  if (!measuring) return;
  const Followed& of = followed(table);
  if (call.slot == kLoadedExecutableExecute && !failed) {
    facts.bytes =
        ran(table, *static_cast<const Execute*>(arguments), leadline_monitor_context(), facts.begun_ns, *measuring);
  }
  count(*measuring, call, facts, failed);
  const bool copied = !failed && call.kind == LEADLINE_GPU_COPY && facts.bytes > 0;
  if (copied && measuring->counts_bytes.load(std::memory_order_relaxed)) {
    gpu::emit_measure(leadline_monitor_context(), MetricKind::kCopyBytes, facts.bytes, facts.device,
                      leadline_monitor_now(), of.device_type.load(std::memory_order_relaxed));
  }
  emit(LEADLINE_END, call, facts, of, token);
}

bool begin(const Call& call, const Arguments* arguments, std::size_t table, Facts* facts, const void* token) noexcept {
  const InCallback measuring;
  if (!measuring || !measuring->told.load(std::memory_order_acquire) || is_question(call.slot, arguments)) return false;
  *facts = facts_of(table, call.slot, arguments);
  if (call.slot == kLoadedExecutableExecute) facts->begun_ns = leadline_monitor_now();
  emit(LEADLINE_BEGIN, call, *facts, followed(table), token);
  return true;
}

void count_gone(Slot slot, const Arguments* arguments) noexcept {
  if (slot == kLoadedExecutableDestroy) return forget_executable(static_cast<const OfObject*>(arguments)->object);
  const InCallback measuring;
  if (measuring) add(measuring->buffers_freed);
}

template <std::size_t kTable, std::size_t kCall>
Error* followed_call(Arguments* arguments) {
  constexpr Call kOne = kCalls[kCall];
  const Followed& of = followed(kTable);
  if constexpr (kOne.name == nullptr) {
    count_gone(kOne.slot, arguments);
    return of.call(kOne.slot, arguments);
  } else {
    Facts facts;
    bool told = false;
    {
      const KeptErrno kept;
      told = begin(kOne, arguments, kTable, &facts, &facts);
    }
    Error* const error = of.call(kOne.slot, arguments);
    const KeptErrno kept;
    if (kOne.slot == kClientCreate && error == nullptr) learn_platform(kTable, *static_cast<ClientCreate*>(arguments));
    if (told) finish(kOne, facts, kTable, arguments, &facts, error != nullptr);
    return error;
  }
}

template <std::size_t kTable, std::size_t... kEach>
constexpr std::array<Function, kSlots> of_table(std::index_sequence<kEach...>) {
  std::array<Function, kSlots> found{};
  ((found[kCalls[kEach].slot] = followed_call<kTable, kEach>), ...);
  return found;
}

template <std::size_t... kEach>
constexpr std::array<std::array<Function, kSlots>, sizeof...(kEach)> of_tables(std::index_sequence<kEach...>) {
  return {of_table<kEach>(std::make_index_sequence<kCalls.size()>())...};
}

}  // namespace

Function call_of(std::size_t table, std::size_t slot) noexcept {
  static constexpr auto kFunctions = of_tables(std::make_index_sequence<kMostTables>());
  return table < kMostTables && slot < kSlots ? kFunctions[table][slot] : nullptr;
}

}  // namespace leadline::pjrt
