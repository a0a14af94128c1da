#include "providers/amd/callbacks.h"

#include <cstring>
#include <new>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "gpu/measure.h"
#include "gpu/recording.h"
#include "providers/amd/correlation.h"

namespace leadline::amd {
namespace {

using gpu::argument;
using gpu::ArgumentLayout;

// The launches of a capture that the thread is in.
struct Capture {
  std::vector<leadline_context> places;
};

// The HIP call that the thread is in; plain data, so that it may be touched at any time of a thread's life.
struct ThisCall {
  const void* of = nullptr;  // the Callbacks that it belongs to
  std::uint32_t id = 0;      // 0: in none
  std::uint32_t stream = StreamNumbers::kUnknown;
  std::uint32_t dispatched = 0;
  bool asked = false;        // work of it was handed to a device
  bool library = false;      // RCCL or HSA, which may call HIP
  std::uint32_t memory = 0;  // of a copy: see Correlation::copy_of
  Graphs::Executable graph;
  Capture* capture = nullptr;
};
thread_local constinit ThisCall this_call;
thread_local constinit std::int32_t this_device = 0;  // HIP's own default

// Numbers of calls; those of one process never repeat before they have gone round.
std::atomic<std::uint32_t> next_call{1};

std::optional<std::uint64_t> address_in(const HipCallKind& kind, const void* arguments) noexcept {
  const ArgumentLayout& at = kind.arguments;
  if (kind.kind == LEADLINE_GPU_ALLOC && at.address_out != ArgumentLayout::kNone) {
    const auto* out = argument<const std::uint64_t*>(arguments, at.address_out);
    return out ? std::optional(*out) : std::nullopt;
  }
  if (kind.kind == LEADLINE_GPU_FREE && at.address != ArgumentLayout::kNone) {
    return argument<std::uint64_t>(arguments, at.address);
  }
  return std::nullopt;
}

bool has_failed(const sdk::HipCall& call) noexcept {
  std::int32_t result = 0;
  std::memcpy(&result, reinterpret_cast<const char*>(&call) + call.size - sdk::kHipReturnBytes, sizeof result);
  return result != 0;
}

}  // namespace

std::uint32_t Callbacks::next_id() noexcept {
  const std::uint32_t id = next_call.fetch_add(1, std::memory_order_relaxed);
  return id != 0 ? id : next_call.fetch_add(1, std::memory_order_relaxed);
}

void Callbacks::hip(std::int32_t operation, sdk::Phase phase, const sdk::HipCall& call) noexcept {
  const HipCallKind* kind = names_.calls.find(operation);
  if (!kind || call.size < sizeof call.size + sdk::kHipReturnBytes) return;
  if (kind->step == Step::kSetDevice) {
    if (phase == sdk::Phase::kExit && !has_failed(call)) this_device = argument<std::int32_t>(call.arguments, 0);
    return;
  }
  if (phase == sdk::Phase::kExit) {
    const bool failed = has_failed(call);
    if (!failed) host_step(*kind, call.arguments);
    return leave(*kind, call.arguments, failed);
  }
  // Whether anything comes of it is told when work is handed to a device: see request().
  if (phase == sdk::Phase::kEnter && calls_.is_listening()) enter(*kind, call.arguments, next_id(), false);
}

void Callbacks::library(const HipCalls& calls, std::int32_t operation, sdk::Phase phase,
                        const sdk::HipCall& call) noexcept {
  const HipCallKind* kind = calls.find(operation);
  if (!kind) return;
  if (phase == sdk::Phase::kExit) return leave(*kind, call.arguments, false);
  if (phase != sdk::Phase::kEnter || !calls_.is_listening()) return;
  const std::uint32_t id = next_id();
  enter(*kind, call.arguments, id, false);
  if (this_call.id == id) this_call.library = true;
}

void Callbacks::host_step(const HipCallKind& kind, const void* arguments) noexcept {
  const ArgumentLayout& at = kind.arguments;
  switch (kind.step) {
    case Step::kHostTaken:
      if (const auto* out = argument<const std::uint64_t*>(arguments, at.address_out)) {
        host_memory_.take(*out, argument<std::uint64_t>(arguments, at.bytes));
      }
      return;
    case Step::kHostLocked:
      return host_memory_.take(argument<std::uint64_t>(arguments, 0), argument<std::uint64_t>(arguments, at.bytes));
    case Step::kHostGivenBack:
      return host_memory_.give_back(argument<std::uint64_t>(arguments, at.address));
    default:
      return;
  }
}

void Callbacks::traced_hip(std::uint32_t operation, const tracer::HipCall& call) noexcept {
  const HipCallKind* kind = names_.calls.find(static_cast<std::int32_t>(operation));
  if (!kind) return;
  if (kind->step == Step::kSetDevice) {
    this_device = argument<std::int32_t>(call.arguments, 0);
    return;
  }
  if (call.phase == tracer::Phase::kExit) {  // it has no word for failing
    host_step(*kind, call.arguments);
    return leave(*kind, call.arguments, false);
  }
  const bool makes_kernel = kind->kind == LEADLINE_GPU_LAUNCH || kind->kind == LEADLINE_GPU_GRAPH_LAUNCH;
  if (call.phase == tracer::Phase::kEnter && calls_.is_listening()) {
    enter(*kind, call.arguments, static_cast<std::uint32_t>(call.correlation), makes_kernel);
    if (call_streams_) call_streams_->put(this_call.id, this_call.stream, this_call.memory);
  }
}

void Callbacks::enter(const HipCallKind& kind, const void* arguments, std::uint32_t id, bool makes_work) noexcept {
  if (!calls_.enter(kind.kind, false, id)) return;
  const ArgumentLayout& at = kind.arguments;
  const bool has_stream = at.stream != ArgumentLayout::kNone;
  this_call.of = this;
  this_call.id = id;
  this_call.stream = has_stream ? streams_.of(argument<std::uint64_t>(arguments, at.stream)) : StreamNumbers::kUnknown;
  this_call.dispatched = 0;
  this_call.asked = this_call.library = false;
  this_call.memory = 0;
  this_call.graph = {};
  if (kind.kind == LEADLINE_GPU_COPY && at.source != ArgumentLayout::kNone) {
    this_call.memory = Correlation::copy_of(host_memory_.of(argument<std::uint64_t>(arguments, at.source)),
                                            host_memory_.of(argument<std::uint64_t>(arguments, at.destination)));
  }
  if (kind.kind == LEADLINE_GPU_LAUNCH || kind.kind == LEADLINE_GPU_GRAPH_LAUNCH) {
    launches_.fetch_add(1, std::memory_order_relaxed);
  }
  if (kind.step == Step::kLaunch) {
    this_call.graph = graphs_.find(argument<std::uint64_t>(arguments, 0));
    graphs_.launched(id, this_call.graph.number);
  }
  leadline_gpu_api_event api{};
  api.name = kind.name.c_str();
  api.kind = kind.kind;
  api.correlation = id;
  api.device = this_device;
  api.stream = -1;
  api.awaits = -1;
  if (at.bytes != ArgumentLayout::kNone) {
    const std::size_t rows = at.rows == ArgumentLayout::kNone ? 1 : argument<std::size_t>(arguments, at.rows);
    api.bytes = static_cast<std::int64_t>(argument<std::size_t>(arguments, at.bytes) * rows);
  }
  const std::int64_t stream =
      has_stream && this_call.stream != StreamNumbers::kUnknown ? std::int64_t{this_call.stream} : -1;
  kind.kind == LEADLINE_GPU_SYNC ? api.awaits = stream : api.stream = stream;
  if (at.event != ArgumentLayout::kNone) {
    const void* event = argument<const void*>(arguments, at.event);
    if (kind.kind == LEADLINE_GPU_EVENT_RECORD) {
      tables_.events.record(event, id, stream);
    } else {
      const gpu::EventMap::Recorded recorded = tables_.events.find(event);
      api.awaits = recorded.stream;
      api.awaits_correlation = recorded.correlation;
    }
  }
  calls_.begin(api, makes_work);
}

void Callbacks::leave(const HipCallKind& kind, const void* arguments, bool failed) noexcept {
  const bool outermost = calls_.is_outermost() && this_call.of == this;
  if (outermost && !failed) graph_step(kind, arguments);
  if (this_call.of == this && !failed && (outermost || this_call.library)) {
    if (kind.kind == LEADLINE_GPU_LAUNCH && this_call.capture && !this_call.asked) {
      try {
        this_call.capture->places.push_back(calls_.is_open() ? calls_.open_call().place : 0);
      } catch (...) {
        gpu::count_loss(LossKind::kInternalError, 1, "No memory to keep a HIP graph's path.");
      }
      if (outermost) calls_.captured();
    }
  }
  const std::optional<std::uint64_t> address =
      outermost && !failed ? address_in(kind, arguments) : std::optional<std::uint64_t>();
  if (outermost) this_call.id = 0;
  calls_.leave(kind.kind, true, failed, address);
}

void Callbacks::graph_step(const HipCallKind& kind, const void* arguments) noexcept try {
  const auto handle = [&](std::int8_t offset) { return argument<std::uint64_t>(arguments, offset); };
  const auto made = [&](std::int8_t offset) {
    const auto* out = argument<const std::uint64_t*>(arguments, offset);
    return out ? *out : 0;
  };
  switch (kind.step) {
    case Step::kNone:
    case Step::kSetDevice:
    case Step::kHostTaken:
    case Step::kHostLocked:
    case Step::kHostGivenBack:
      return;
    case Step::kBeginCapture:
      delete this_call.capture;
      this_call.capture = new Capture;
      return;
    case Step::kEndCapture: {
      const std::unique_ptr<Capture> capture(std::exchange(this_call.capture, nullptr));
      if (capture && made(8) != 0) graphs_.captured(made(8), capture->places);
      return;
    }
    case Step::kInstantiate:
      graphs_.instantiated(handle(kind.arguments.graph), made(0), calls_.is_open() ? calls_.open_call().place : 0);
      return;
    case Step::kLaunch:
      if (!call_streams_) graphs_.replayed(this_call.graph, this_call.dispatched);
      return;
    case Step::kDestroy:
      graphs_.destroyed(handle(0));
      return;
    case Step::kDestroyExec:
      graphs_.executable_destroyed(handle(0));
      return;
  }
} catch (...) {
  gpu::count_loss(LossKind::kInternalError, 1, "No memory to keep a HIP graph's path.");
}

std::uint64_t Callbacks::request(std::int32_t kind) noexcept {
  if (!calls_.is_listening()) return Correlation::kNotMeasured;
  requests_.fetch_add(1, std::memory_order_relaxed);
  Correlation correlation;
  if (this_call.of == this && this_call.id != 0) {
    correlation.call = this_call.id;
    correlation.stream = this_call.stream;
    this_call.asked = true;
    if (this_call.graph.number != 0 && kind == names_.dispatch_request &&
        this_call.dispatched < Correlation::kMostNodes - 1) {
      correlation.node = ++this_call.dispatched;
    } else if (kind == names_.copy_request) {
      correlation.node = this_call.memory;
    }
    tables_.launches.expect(calls_.place_in_log(), correlation.call);
    return correlation.pack();
  }
  // Not of a HIP call: a library that drives HSA itself, or a thread of HIP's own.
  correlation.call = next_id();
  const bool told = calls_.is_open();
  const leadline_context place = told ? leadline_monitor_context() : 0;
  tables_.launches.put(correlation.call,
                       {place, leadline_monitor_now(), calls_.place_in_log(), LEADLINE_GPU_LAUNCH, 0, !told}, told);
  return correlation.pack();
}

void Callbacks::marker(std::int32_t operation, sdk::Phase phase, const sdk::MarkerCall& call) noexcept {
  using Step = RoctxRanges::Step;
  const MarkerOperations& is = names_.markers;
  const bool starts = operation == is.start;  // its number is known at its end
  if (phase != (starts ? sdk::Phase::kExit : sdk::Phase::kEnter)) return;
  if (starts) {
    ranges_.take(Step::kStart, call.message, call.size >= sizeof call ? call.result : 0, calls_.is_open());
  } else if (operation == is.push) {
    ranges_.take(Step::kPush, call.message, 0, calls_.is_open());
  } else if (operation == is.pop) {
    ranges_.take(Step::kPop, nullptr, 0, calls_.is_open());
  } else if (operation == is.stop) {
    ranges_.take(Step::kStop, nullptr, call.range, calls_.is_open());
  }
}

void Callbacks::traced_range(std::uint32_t operation, const tracer::RoctxCall& call) noexcept {
  using Step = RoctxRanges::Step;
  switch (static_cast<tracer::RoctxOperation>(operation)) {
    case tracer::RoctxOperation::kPush:
      return ranges_.take(Step::kPush, call.message, 0, calls_.is_open());
    case tracer::RoctxOperation::kPop:
      return ranges_.take(Step::kPop, nullptr, 0, calls_.is_open());
    case tracer::RoctxOperation::kStart:
      return ranges_.take(Step::kStart, call.message, call.range, calls_.is_open());
    case tracer::RoctxOperation::kStop:
      return ranges_.take(Step::kStop, nullptr, call.range, calls_.is_open());
    case tracer::RoctxOperation::kMark:
      return;
  }
}

}  // namespace leadline::amd
