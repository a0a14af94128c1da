#include "providers/amd/callbacks.h"

#include <algorithm>
#include <array>
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
  bool asked = false;  // work of it was handed to a device
  Graphs::Executable graph;
  Capture* capture = nullptr;
};
thread_local constinit ThisCall this_call;
thread_local constinit std::int32_t this_device = 0;  // HIP's own default

// roctx ranges that the thread has open. Regions nest, so one that ends inside another stays until that one ends.
struct Ranges {
  static constexpr std::size_t kMost = 256;
  struct Range {
    std::uint64_t id = 0;       // 0: not shown
    std::uint64_t started = 0;  // roctx's number of a range that a pop does not end; 0: pushed
    bool ended = false;
  };
  const void* of = nullptr;
  std::size_t open = 0;
  std::size_t beyond = 0;  // pushed where there was no room: not shown
  std::array<Range, kMost> ranges{};
};
// Of the heap: a module that loads late has little room for what is each thread's own.
thread_local constinit Ranges* t_ranges = nullptr;
thread_local constinit bool t_gone = false;
struct AtThreadEnd {
  ~AtThreadEnd() {
    delete t_ranges;
    t_ranges = nullptr;
    t_gone = true;
  }
};

// The calling thread's; nullptr where there is no memory, and at the end of the thread.
Ranges* ranges_of_thread() noexcept {
  if (t_ranges || t_gone) return t_ranges;
  t_ranges = new (std::nothrow) Ranges;
  thread_local AtThreadEnd at_end;
  static_cast<void>(at_end);
  return t_ranges;
}

// Numbers of calls; those of one process never repeat before they have gone round.
std::atomic<std::uint32_t> next_call{1};
std::atomic<std::uint64_t> next_range{1};

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

void emit_range(leadline_phase phase, const char* name, std::uint64_t id) noexcept {
  leadline_event event{};
  event.domain = LEADLINE_DOMAIN_REGION;
  event.phase = phase;
  event.time_ns = leadline_monitor_now();
  event.token = reinterpret_cast<const void*>(id << 1 | 1);  // odd, so never an address that another uses as its token
  event.of.region.name = name;
  event.of.region.kind = LEADLINE_REGION_USER;
  leadline_monitor_emit(&event);
}

void count_unordered() noexcept {
  gpu::count_loss(LossKind::kRangeUnordered, 1,
                  "A roctx range did not end inside the range around it, or not on its thread; its time runs until the "
                  "ranges in it have ended.");
}

void close_range(Ranges& ranges, std::size_t at) noexcept {
  Ranges::Range* const first = ranges.ranges.data();
  Ranges::Range* const end = first + ranges.open;
  const auto shown = [](const Ranges::Range& range) { return range.id != 0; };
  if (shown(first[at]) && std::any_of(first + at + 1, end, shown)) {
    first[at].ended = true;
    return count_unordered();
  }
  if (shown(first[at])) emit_range(LEADLINE_END, "", first[at].id);
  std::move(first + at + 1, end, first + at);
  --ranges.open;
  while (ranges.open > 0 && first[ranges.open - 1].ended) emit_range(LEADLINE_END, "", first[--ranges.open].id);
}

// False where the thread has no range of that number.
bool close_started(Ranges& ranges, std::uint64_t number) noexcept {
  for (std::size_t at = ranges.open; at-- > 0;) {
    const Ranges::Range& range = ranges.ranges[at];
    if (range.started != number || range.ended) continue;
    close_range(ranges, at);
    return true;
  }
  return false;
}

// Numbers of ranges that a thread has stopped and another one started, which closes them with its next marker.
constexpr std::size_t kElsewhere = 64;
std::array<std::atomic<std::uint64_t>, kElsewhere> ended_elsewhere{};
std::atomic<std::uint64_t> next_elsewhere{0};

void end_elsewhere(std::uint64_t number) noexcept {
  ended_elsewhere[next_elsewhere.fetch_add(1, std::memory_order_relaxed) % kElsewhere].store(number);
  count_unordered();
}

void close_those_ended_elsewhere(Ranges& ranges) noexcept {
  if (next_elsewhere.load(std::memory_order_relaxed) == 0) return;
  for (std::atomic<std::uint64_t>& slot : ended_elsewhere) {
    std::uint64_t number = slot.load();
    if (number != 0 && close_started(ranges, number)) slot.compare_exchange_strong(number, 0);
  }
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
  if (phase == sdk::Phase::kExit) return leave(*kind, call);
  if (phase == sdk::Phase::kEnter && calls_.is_listening()) enter(*kind, call.arguments);
}

void Callbacks::enter(const HipCallKind& kind, const void* arguments) noexcept {
  const std::uint32_t id = next_id();
  if (!calls_.enter(kind.kind, false, id)) return;
  const ArgumentLayout& at = kind.arguments;
  const bool has_stream = at.stream != ArgumentLayout::kNone;
  this_call.of = this;
  this_call.id = id;
  this_call.stream = has_stream ? streams_.of(argument<std::uint64_t>(arguments, at.stream)) : StreamNumbers::kUnknown;
  this_call.dispatched = 0;
  this_call.asked = false;
  this_call.graph = {};
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
  // Whether anything comes of it is told when work is handed to a device: see request().
  calls_.begin(api, false);
}

void Callbacks::leave(const HipCallKind& kind, const sdk::HipCall& call) noexcept {
  const bool outermost = calls_.is_outermost() && this_call.of == this;
  const bool failed = has_failed(call);
  if (outermost && !failed) {
    graph_step(kind, call.arguments);
    if (kind.kind == LEADLINE_GPU_LAUNCH && this_call.capture && !this_call.asked) {
      try {
        this_call.capture->places.push_back(calls_.is_open() ? calls_.open_call().place : 0);
      } catch (...) {
        gpu::count_loss(LossKind::kInternalError, 1, "No memory to keep a HIP graph's path.");
      }
      calls_.captured();
    }
  }
  const std::optional<std::uint64_t> address =
      outermost && !failed ? address_in(kind, call.arguments) : std::optional<std::uint64_t>();
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
      graphs_.instantiated(handle(8), made(0), calls_.is_open() ? calls_.open_call().place : 0);
      return;
    case Step::kLaunch:
      graphs_.replayed(this_call.graph, this_call.dispatched);
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
    }
    tables_.launches.expect(correlation.call);
    return correlation.pack();
  }
  // Not of a HIP call: a library that drives HSA itself, or a thread of HIP's own.
  correlation.call = next_id();
  const bool told = calls_.is_open();
  const leadline_context place = told ? leadline_monitor_context() : 0;
  tables_.launches.put(correlation.call,
                       {place, leadline_monitor_now(), calls_.marks_of_this_thread(), LEADLINE_GPU_LAUNCH, 0, !told},
                       told);
  return correlation.pack();
}

void Callbacks::marker(std::int32_t operation, sdk::Phase phase, const sdk::MarkerCall& call) noexcept {
  const bool starts = operation == names_.markers.start;  // its number is known at its end
  if (phase != (starts ? sdk::Phase::kExit : sdk::Phase::kEnter)) return;
  Ranges* const mine = ranges_of_thread();
  if (!mine) return gpu::count_loss(LossKind::kInternalError, 1, "No memory to keep a roctx range.");
  Ranges& ranges = *mine;
  if (ranges.of != this) {
    ranges.of = this;
    ranges.open = ranges.beyond = 0;
  }
  close_those_ended_elsewhere(ranges);
  const auto number = starts && call.size >= sizeof call ? call.result : 0;
  if (operation == names_.markers.push || (starts && number != 0)) {
    if (ranges.open == Ranges::kMost) {
      if (!starts) ++ranges.beyond;
      return;
    }
    Ranges::Range& range = ranges.ranges[ranges.open++];
    range = {0, number, false};
    if (!calls_.is_open() || !call.message) return;
    range.id = next_range.fetch_add(1, std::memory_order_relaxed);
    emit_range(LEADLINE_BEGIN, call.message, range.id);
  } else if (operation == names_.markers.pop) {
    if (ranges.beyond > 0) return static_cast<void>(--ranges.beyond);
    for (std::size_t at = ranges.open; at-- > 0;) {
      if (ranges.ranges[at].started == 0 && !ranges.ranges[at].ended) return close_range(ranges, at);
    }
  } else if (operation == names_.markers.stop && call.range != 0 && !close_started(ranges, call.range)) {
    end_elsewhere(call.range);
  }
}

}  // namespace leadline::amd
