#include "providers/pjrt/runs.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>

#include "base/ids.h"
#include "gpu/in_callback.h"
#include "gpu/measure.h"
#include "providers/pjrt/table.h"

namespace leadline::pjrt {
namespace {

using InCallback = gpu::InCallback<Measuring>;
constexpr std::size_t kMostExecutables = 4096;
constexpr std::size_t kMostInFlight = 4096;
constexpr std::size_t kTries = 32;
constexpr std::size_t kMostDevices = 64;  // of one call; the rest are not waited for

struct Results {
  std::size_t count = 0;
  std::int64_t bytes = 0;  // on one device
};
struct Known {
  std::atomic<const void*> executable{nullptr};
  Results results;
};
std::array<Known, kMostExecutables> known;
const char being_written = 0;

Known& known_at(const void* executable, std::size_t attempt) noexcept {
  constexpr std::uintptr_t kSpread = 0x9e3779b97f4a7c15;
  const std::uintptr_t hash = (reinterpret_cast<std::uintptr_t>(executable) >> 4) * kSpread >> 40;
  return known[(hash + attempt) % kMostExecutables];
}

std::size_t result_count(std::size_t table, void* executable) noexcept {
  GetObject plain{{{sizeof(GetObject), nullptr}, executable}, nullptr};
  if (executable == nullptr || !ask(table, kLoadedExecutableGetExecutable, &plain)) return 0;
  OutputCount asked{{{sizeof(OutputCount), nullptr}, plain.found}, 0};
  const bool told = ask(table, kExecutableNumOutputs, &asked);
  OfObject gone{{sizeof(OfObject), nullptr}, plain.found};
  ask(table, kExecutableDestroy, &gone);
  return told ? asked.count : 0;
}

Results results_of(std::size_t table, const Execute& run) noexcept {
  for (std::size_t attempt = 0; attempt < kTries; ++attempt) {
    Known& one = known_at(run.executable, attempt);
    if (one.executable.load(std::memory_order_acquire) == run.executable) return one.results;
  }
  Results asked{result_count(table, run.executable), 0};
  if (run.results == nullptr || run.device_count == 0 || run.results[0] == nullptr) asked.count = 0;
  for (std::size_t i = 0; i < asked.count; ++i) asked.bytes += size_of_buffer(table, run.results[0][i]);
  for (std::size_t attempt = 0; attempt < kTries; ++attempt) {
    Known& one = known_at(run.executable, attempt);
    const void* free = nullptr;
    if (!one.executable.compare_exchange_strong(free, &being_written, std::memory_order_acquire)) continue;
    one.results = asked;
    one.executable.store(run.executable, std::memory_order_release);
    break;
  }
  return asked;
}

struct InFlight {
  std::atomic<bool> taken{false};
  std::size_t table = 0;
  void* event = nullptr;  // ours to destroy
  leadline_context place = 0;
  std::int64_t begun_ns = 0;
  std::uint64_t session = 0;
  std::int32_t device = -1;
};
std::array<InFlight, kMostInFlight> in_flight;
std::atomic<std::size_t> next_place{0};

InFlight* take_place() noexcept {
  const std::size_t first = next_place.fetch_add(1, std::memory_order_relaxed);
  for (std::size_t attempt = 0; attempt < kTries; ++attempt) {
    InFlight& one = in_flight[(first + attempt) % kMostInFlight];
    bool taken = false;
    if (one.taken.compare_exchange_strong(taken, true, std::memory_order_acquire)) return &one;
  }
  return nullptr;
}

void give_back(InFlight& one) noexcept {
  if (one.event != nullptr) {
    OfObject gone{{sizeof(OfObject), nullptr}, one.event};
    ask(one.table, kEventDestroy, &gone);
  }
  one.taken.store(false, std::memory_order_release);
}

// From the call, or from the end of the run before it on the device, which does one after the other.
std::int64_t lasted_ns(Measuring& measuring, const InFlight& one, std::int64_t now_ns) noexcept {
  if (one.device < 0 || static_cast<std::size_t>(one.device) >= measuring.last_end_ns.size()) {
    return now_ns - one.begun_ns;
  }
  const std::int64_t before =
      measuring.last_end_ns[static_cast<std::size_t>(one.device)].exchange(now_ns, std::memory_order_relaxed);
  return std::max<std::int64_t>(now_ns - std::max(before, one.begun_ns), 0);
}

void book_end(Measuring& measuring, const InFlight& one) noexcept {
  const std::int64_t now_ns = leadline_monitor_now();
  const leadline_measure lasted{gpu::number(MetricKind::kCallTime), lasted_ns(measuring, one, now_ns)};
  leadline_event event = gpu::activity_event(one.place, now_ns);
  leadline_gpu_activity_event& activity = event.of.gpu_activity;
  activity.frame_kind = static_cast<std::uint8_t>(FrameKind::kPhase);
  activity.event_kind = static_cast<std::uint8_t>(EventKind::kKernel);
  activity.name = "on the device";
  activity.frame = measuring.frame.load(std::memory_order_relaxed);
  activity.device = one.device;
  activity.device_type = followed(one.table).device_type.load(std::memory_order_relaxed);
  activity.stream = -1;
  activity.start_ns = now_ns;
  // What the device worked is gpu_time, and told by who sees its kernels; a run's is the whole of it, waits inside too.
  activity.duration_ns = LEADLINE_TOLD_BEFORE;
  activity.measures = &lasted;
  activity.measure_count = 1;
  leadline_monitor_emit(&event);
}

// Called by the plug-in, on any thread and at any time, perhaps before `ran` has returned.
void ended(Error* error, void* given) noexcept {
  const int kept = errno;
  auto& one = *static_cast<InFlight*>(given);
  if (error != nullptr) {
    ErrorDestroy destroy{{sizeof(ErrorDestroy), nullptr}, error};
    followed(one.table).call(kErrorDestroy, &destroy);
  }
  {
    const InCallback measuring;
    if (measuring && measuring->session.load(std::memory_order_relaxed) == one.session) {
      (error == nullptr ? measuring->ended : measuring->ended_failed).fetch_add(1, std::memory_order_relaxed);
      if (error == nullptr) book_end(*measuring, one);
    }
  }
  give_back(one);
  errno = kept;
}

}  // namespace

bool ask(std::size_t table, Slot slot, Arguments* arguments) noexcept {
  const Followed& of = followed(table);
  if (!of.has(slot) || !of.has(kErrorDestroy)) return false;
  Error* const error = of.call(slot, arguments);
  if (error == nullptr) return true;
  ErrorDestroy destroy{{sizeof(ErrorDestroy), nullptr}, error};
  of.call(kErrorDestroy, &destroy);
  return false;
}

std::int32_t number_of(std::size_t table, void* device) noexcept {
  HardwareId asked{{kHardwareIdSize, nullptr}, device, -1};
  return device != nullptr && ask(table, kDeviceLocalHardwareId, &asked) ? asked.id : -1;
}

std::int32_t device_of_buffer(std::size_t table, void* buffer) noexcept {
  BufferDevice asked{{{sizeof(BufferDevice), nullptr}, buffer}, nullptr};
  return buffer != nullptr && ask(table, kBufferDevice, &asked) ? number_of(table, asked.device) : -1;
}

std::int64_t size_of_buffer(std::size_t table, void* buffer) noexcept {
  BufferSize asked{{{sizeof(BufferSize), nullptr}, buffer}, 0};
  return buffer != nullptr && ask(table, kBufferOnDeviceSize, &asked) ? static_cast<std::int64_t>(asked.bytes) : 0;
}

std::int64_t ran(std::size_t table, const Execute& run, leadline_context place, std::int64_t begun_ns,
                 Measuring& measuring) noexcept {
  const Results results = results_of(table, run);
  const std::size_t devices = std::min(run.device_count, kMostDevices);
  for (std::size_t i = 0; i < devices; ++i) {
    void* const asked_for = run.complete != nullptr ? run.complete[i] : nullptr;
    void* const* const made = run.results != nullptr ? run.results[i] : nullptr;
    void* const first = results.count != 0 && made != nullptr ? made[0] : nullptr;
    if (asked_for == nullptr && first == nullptr) continue;
    InFlight* const one = followed(table).has(kEventOnReady) ? take_place() : nullptr;
    if (one == nullptr) {
      measuring.not_awaited.fetch_add(1, std::memory_order_relaxed);
      continue;
    }
    one->table = table;
    one->event = nullptr;
    one->place = place;
    one->begun_ns = begun_ns;
    one->session = measuring.session.load(std::memory_order_relaxed);
    one->device = first != nullptr ? device_of_buffer(table, first) : number_of(table, run.device);
    void* event = asked_for;
    if (event == nullptr) {
      GetObject ready{{{sizeof(GetObject), nullptr}, first}, nullptr};
      if (ask(table, kBufferReadyEvent, &ready)) event = one->event = ready.found;
    }
    OnReady asked{{{sizeof(OnReady), nullptr}, event}, ended, one};
    if (event == nullptr || !ask(table, kEventOnReady, &asked)) {
      measuring.not_awaited.fetch_add(1, std::memory_order_relaxed);
      give_back(*one);
    }
  }
  return results.bytes * static_cast<std::int64_t>(run.device_count);
}

void forget_all_executables() noexcept {
  for (Known& each : known) each.executable.store(nullptr, std::memory_order_release);
}

void forget_executable(const void* executable) noexcept {
  for (std::size_t attempt = 0; executable != nullptr && attempt < kTries; ++attempt) {
    const void* found = executable;
    if (known_at(executable, attempt).executable.compare_exchange_strong(found, nullptr, std::memory_order_acq_rel)) {
      return;
    }
  }
}

}  // namespace leadline::pjrt
