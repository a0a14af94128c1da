#include "providers/nvidia/pc_sampling.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <deque>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "gpu/measure.h"
#include "providers/nvidia/call_trace.h"
#include "providers/nvidia/pc_sampling_context.h"

namespace leadline::nvidia {
namespace {

constexpr std::int64_t kFirstCostNs = 1'000'000;  // of a window, until one was measured
constexpr int kMostRounds = 256;                  // of taking records after one window
constexpr std::chrono::milliseconds kIdleWithin{200};
constexpr std::uint32_t kNotIdle = 20;  // times in a row, after which no more is waited for
constexpr const char* kHangs =
    "Instructions are not sampled from here on because CUPTI did not answer in time when samples were asked "
    "for; try LEADLINE_PC_PLACE=helper, or another driver.";

}  // namespace

PcSampler::PcSampler(const CuptiLibrary& library, const Driver& driver, PcSamplingOptions options)
    : library_(library),
      version_(library.version()),
      options_(std::move(options)),
      driver_(driver),
      call_(library.sampling()),
      code_(options_.code_folder, options_.code_bytes),
      windows_(options_.budget, options_.window_s, kFirstCostNs,
               {[this] { return ready(); }, [this] { open_window(); }, [this] { close_window(); }}) {}

PcSampler::~PcSampler() = default;

bool PcSampler::ready() {
  const std::int64_t since = asking_since_ns_.load(std::memory_order_relaxed);
  const std::int64_t limit = std::chrono::nanoseconds(limit_).count();
  if (since != 0 && waiting_clock() - since > limit && !given_up_.exchange(true)) refuse(kHangs);
  if (given_up_.load(std::memory_order_relaxed) || never_idle_.load(std::memory_order_relaxed)) return false;
  if (is_at_launches() && launches_.load(std::memory_order_relaxed) < options_.switches.after) return false;
  const std::lock_guard lock(list_mutex_);
  return !contexts_.empty();
}

void PcSampler::give_up(void* context, const std::string& why) {
  {
    const std::lock_guard lock(list_mutex_);
    refused_.push_back(context);
  }
  refuse(why);
}

void PcSampler::refuse(const std::string& sentence) {
  {
    const std::lock_guard lock(list_mutex_);
    if (!message_.empty()) return;  // once is enough
    message_ = sentence;
  }
  gpu::count_loss(LossKind::kProviderUnavailable, 1, sentence.c_str());
}

bool PcSampler::begin() {
  if (!call_.complete()) {
    refuse("Instructions are not sampled because CUPTI " + cupti_version_name(version_) + " (" + library_.path() +
           ") has no functions for it; install nvidia-cuda-cupti of CUDA 12 or 13.");
    return false;
  }
  if (options_.mode == cupti::SamplingMode::kSerialised && version_ < cupti::kVersion12_4) {
    refuse(
        "Instructions are not sampled launch by launch because CUPTI reports single launches from 12.4 on; leave out "
        "`=serialised`, or install a newer nvidia-cuda-cupti.");
    return false;
  }
  windows_.begin(leadline_monitor_now());
  return true;
}

std::vector<std::shared_ptr<PcSampler::Context>> PcSampler::contexts() const {
  const std::lock_guard lock(list_mutex_);
  return contexts_;
}

std::shared_ptr<PcSampler::Context> PcSampler::take_out(void* context) {
  const std::lock_guard lock(list_mutex_);
  std::erase(refused_, context);
  const auto found =
      std::find_if(contexts_.begin(), contexts_.end(), [&](const auto& one) { return one->handle == context; });
  if (found == contexts_.end()) return nullptr;
  std::shared_ptr<Context> taken = *found;
  contexts_.erase(found);
  return taken;
}

void PcSampler::context_created(void* handle, std::int32_t device) noexcept {
  try {
    bool taken = false;
    {
      const std::lock_guard lock(list_mutex_);
      if (std::ranges::find(refused_, handle) != refused_.end()) return;
      for (const auto& known : contexts_) {
        if (known->handle == handle) return;
        taken = taken || known->device == device;
      }
    }
    auto context = std::make_shared<Context>(handle, device);
    std::string why =
        "Instructions of a second context of a device are not sampled, because CUPTI samples one context of each "
        "device at a time; programs have one unless they make more by cuCtxCreate.";
    // Elsewhere it is set up where it launches.
    const bool now =
        options_.switches.place == SamplingPlace::kWindow || options_.switches.place == SamplingPlace::kCreated;
    bool fits = !taken && (!now || configure(*context, &why));
    if (fits && options_.switches.place == SamplingPlace::kCreated) {
      if (!start(*context)) return;  // said already
    }
    {
      const std::lock_guard lock(list_mutex_);
      if (fits) return contexts_.push_back(std::move(context));
    }
    give_up(handle, why);
  } catch (...) {
    gpu::count_loss(LossKind::kInternalError, 1,
                    "Instructions are not sampled because the provider ran out of memory.");
  }
}

void PcSampler::context_destroyed(void* handle) noexcept {
  try {
    const std::shared_ptr<Context> context = take_out(handle);
    if (!context) return;  // or it was refused: its address may be given to another one
    const std::unique_lock lock(context->mutex, std::try_to_lock);
    if (!lock || given_up_.load(std::memory_order_relaxed)) {
      gpu::count_loss(LossKind::kInstructionSamplesDropped, 1,
                      "Samples of instructions were lost: their context went while CUPTI was at work on it.");
      return;
    }
    auto of = of_context(handle);
    if (context->open) finish(*context);
    if (context->on) traced("cuptiPCSamplingDisable", call_.disable, &of);
    context->on = false;
  } catch (...) {
    gpu::count_loss(LossKind::kInternalError, 1, "The last samples of a context were lost for lack of memory.");
  }
}

// Addresses in code that is unloaded may be given to other code.
void PcSampler::code_unloading(void* handle) noexcept {
  try {
    for (const std::shared_ptr<Context>& context : contexts()) {
      if (context->handle != handle) continue;
      const std::unique_lock lock(context->mutex, std::try_to_lock);
      if (lock && context->on && context->open && !given_up_.load(std::memory_order_relaxed)) drain(*context);
    }
  } catch (...) {
    gpu::count_loss(LossKind::kInternalError, 1, "Samples of code that was unloaded were lost for lack of memory.");
  }
}

void PcSampler::open_window() {
  window_.fetch_add(1, std::memory_order_relaxed);
  wanted_.store(true, std::memory_order_release);
  if (is_at_launches()) return;
  for (const std::shared_ptr<Context>& context : contexts()) {
    const std::lock_guard lock(context->mutex);
    if (context->on && !context->open) start(*context);
  }
}

void PcSampler::close_window() {
  wanted_.store(false, std::memory_order_relaxed);
  if (is_at_launches()) return;
  for (const std::shared_ptr<Context>& context : contexts()) {
    const std::lock_guard lock(context->mutex);
    if (context->on && context->open) finish(*context);
  }
}

void PcSampler::capture(bool begins) noexcept {
  // One may have begun before measuring did.
  if (captures_.fetch_add(begins ? 1 : -1, std::memory_order_relaxed) <= 0 && !begins) captures_.fetch_add(1);
}

bool PcSampler::is_capturing(void* stream) const noexcept {
  if (captures_.load(std::memory_order_relaxed) > 0) return true;
  std::int32_t status = 0;
  const auto ask = driver_.call().stream_is_capturing;
  return ask != nullptr && (ask(static_cast<cuda::Stream>(stream), &status) != cuda::kSuccess || status != 0);
}

bool PcSampler::is_over(const Context& context) const noexcept {
  const std::uint32_t at_once = options_.switches.at_once;
  return !wanted_.load(std::memory_order_relaxed) || context.asked.load() != window_.load(std::memory_order_relaxed) ||
         (at_once > 0 && context.launches >= at_once);
}

// At the begin or end of a launch, on its thread.
void PcSampler::meet(void* handle, void* stream, bool begins) noexcept try {
  if (!is_at_launches() || given_up_.load(std::memory_order_relaxed) || captures_.load(std::memory_order_relaxed) > 0)
    return;
  std::shared_ptr<Context> context;
  {
    const std::unique_lock lock(list_mutex_, std::try_to_lock);
    if (!lock) return;  // the next launch will do
    const auto found = std::ranges::find(contexts_, handle, [](const auto& one) { return one->handle; });
    if (found == contexts_.end()) return;
    context = *found;
  }
  const std::uint64_t window = window_.load(std::memory_order_relaxed);
  const bool always_on = options_.switches.place == SamplingPlace::kCreated;
  const std::unique_lock lock(context->mutex, std::try_to_lock);
  if (!lock) return;
  if (!begins && (!context->open || context->opened_by != std::this_thread::get_id())) return;
  if (!begins) ++context->launches;
  const bool wanted = wanted_.load(std::memory_order_relaxed) && context->asked.load() != window;
  const bool ends = context->open && (always_on ? wanted : is_over(*context));
  if (!ends && (!begins || context->open || !wanted)) return;
  if (begins && is_capturing(stream)) return;
  std::int64_t began = leadline_monitor_now();
  if (!device_is_idle(*context)) return windows_.spend(leadline_monitor_now() - began);
  bool going = true;
  if (ends) {
    going = ask([this, context, always_on] { always_on ? roll(*context) : finish(*context); });
    if (always_on && going) context->asked.store(window);
    if (!always_on) forget_if_all_had_it();
  }
  if (going && begins && wanted && !context->open) {
    if (!context->on) {  // paid once, and no part of what windows cost
      struct Made {
        std::string why;
        bool done = false;
      };
      const auto made = std::make_shared<Made>();  // what is given up on may go on
      if (!ask([this, context, made] { made->done = configure(*context, &made->why); })) return;
      if (!made->done) {
        take_out(handle);
        return give_up(handle, made->why);
      }
      began = leadline_monitor_now();
    }
    context->asked.store(window);
    ask([this, context] { start(*context); });
  }
  windows_.spend(leadline_monitor_now() - began);
} catch (...) {
  gpu::count_loss(LossKind::kInternalError, 1, "Instructions are not sampled because the provider ran out of memory.");
}

// Where every context had its launches the rest of the window costs nothing.
void PcSampler::forget_if_all_had_it() noexcept {
  if (options_.switches.at_once == 0) return;
  const std::uint64_t window = window_.load(std::memory_order_relaxed);
  const std::unique_lock lock(list_mutex_, std::try_to_lock);
  if (!lock) return;
  if (std::ranges::all_of(contexts_, [&](const auto& one) { return one->asked.load() == window; }))
    wanted_.store(false, std::memory_order_relaxed);
}

// CUPTI's calls, on the thread that they are to be made on. False: given up.
template <class Calls>
bool PcSampler::ask(const Calls& calls) {
  if (options_.switches.place == SamplingPlace::kHelper) {
    if (calls_.run(calls, limit_)) return true;
    if (!given_up_.exchange(true)) refuse(kHangs);
    return false;
  }
  asking_since_ns_.store(waiting_clock(), std::memory_order_relaxed);
  calls();
  asking_since_ns_.store(0, std::memory_order_relaxed);
  return true;
}

// Whether the device has done all that was launched, which may be waited for a little. A kernel may wait for what the
// thread that launches has yet to do, as where a function of the host needs the interpreter.
bool PcSampler::device_is_idle(Context& context) {
  const auto synchronize = driver_.call().context_synchronize;
  const auto set_current = driver_.call().context_set_current;
  if (options_.switches.wait == SamplingWait::kNobody || synchronize == nullptr) return true;
  if (options_.switches.wait == SamplingWait::kLaunch || set_current == nullptr) {
    traced("cuCtxSynchronize", synchronize);
    return true;
  }
  const bool idle = calls_.run(
      [handle = context.handle, synchronize, set_current] {
        traced("cuCtxSetCurrent", set_current, static_cast<cuda::Context>(handle));
        traced("cuCtxSynchronize", synchronize);
      },
      kIdleWithin);
  const std::uint32_t in_a_row = idle ? 0 : not_idle_.load(std::memory_order_relaxed) + 1;
  not_idle_.store(in_a_row, std::memory_order_relaxed);
  if (in_a_row >= kNotIdle && !never_idle_.exchange(true)) {
    refuse(
        "Instructions are not sampled from here on because the device was not idle within 0.2 s of a launch, twenty "
        "times in a row; LEADLINE_PC_SYNC=off samples without waiting for it.");
  }
  return idle;
}

bool PcSampler::start(Context& context) {
  const std::int64_t now = leadline_monitor_now();
  samples_.window_opens(context.device, now);
  auto of = of_context(context.handle);
  const cupti::Result result = traced("cuptiPCSamplingStart", call_.start, &of);
  if (result == cupti::kSuccess) {
    context.opens(now);
    open_.fetch_add(1, std::memory_order_relaxed);
    return true;
  }
  samples_.window_closes(context.device, now);
  traced("cuptiPCSamplingDisable", call_.disable, &of);
  context.on = false;
  take_out(context.handle);
  give_up(context.handle, refusal(result, "to start"));
  return false;
}

void PcSampler::finish(Context& context) {
  auto of = of_context(context.handle);
  traced("cuptiPCSamplingStop", call_.stop, &of);
  context.closes(leadline_monitor_now());
  open_.fetch_sub(1, std::memory_order_relaxed);
  know_launch(context);
  drain(context);
  samples_.window_closes(context.device, context.windows.back().end_ns);
}

// Where sampling stays on: what there is belongs to the time until now.
void PcSampler::roll(Context& context) {
  drain(context);
  const std::int64_t now = leadline_monitor_now();
  context.closes(now);
  samples_.window_closes(context.device, now);
  context.shift.reset();  // CUPTI's number stays, ours goes on
  samples_.window_opens(context.device, now);
  context.opens(now);
}

void PcSampler::drain(Context& context) noexcept {
  for (int round = 0; round < kMostRounds; ++round) {
    cupti::SamplingData* data = context.records->empty();
    cupti::SamplingGetData ask{sizeof(cupti::SamplingGetData), nullptr, context.handle, data};
    const cupti::Result result = traced("cuptiPCSamplingGetData", call_.get_data, &ask);
    if (result == cupti::kOutOfMemory || data->hardware_buffer_full != 0) {
      buffer_full_.fetch_add(1, std::memory_order_relaxed);
      gpu::count_loss(LossKind::kInstructionSamplesDropped, 1,
                      "The device's buffer of samples was full, so those of one window are missing; sample less often "
                      "with LEADLINE_SAMPLE_PERIOD (each step up halves them).");
    }
    if (result != cupti::kSuccess && result != cupti::kOutOfMemory) return;
    take(context, *context.records, *data);
    if (data->remaining == 0 || data->records == 0) return;
  }
}

void PcSampler::take(Context& context, const Records& records, const cupti::SamplingData& data) noexcept {
  if (data.dropped_samples > 0) {
    dropped_.fetch_add(data.dropped_samples, std::memory_order_relaxed);
    gpu::count_loss(LossKind::kInstructionSamplesDropped, data.dropped_samples,
                    "The device dropped samples that came faster than they could be written; shares of instructions "
                    "may be off where most were dropped.");
  }
  other_samples_.fetch_add(data.other_samples, std::memory_order_relaxed);
  if (data.records == 0 || context.windows.empty()) return;
  try {
    const Context::Window& window = context.window(data.range);
    gpu::SampleBatch batch;
    batch.device = context.device;
    batch.start_ns = window.start_ns;
    batch.end_ns = window.end_ns;
    std::unordered_map<std::string, std::uint32_t> rows;
    for (std::size_t i = 0; i < std::min<std::size_t>(data.records, kPcRecords); ++i) {
      const cupti::PcRecord pc = records.at(i);
      if (pc.function == nullptr || pc.stalls == nullptr) continue;
      const auto [row, added] = rows.try_emplace(pc.function, static_cast<std::uint32_t>(rows.size()));
      if (added) {
        batch.functions.emplace_back(pc.function);
        batch.kernels.push_back(kernel_of(pc.function));
      }
      // Each reason is counted twice, the second time where nothing else was issued.
      struct Counted {
        const char* name;
        std::uint64_t count, latency;
      };
      std::vector<Counted> counts;  // few
      for (std::size_t s = 0; s < std::min(pc.stall_count, records.reasons()); ++s) {
        const cupti::StallCount& stall = pc.stalls[s];
        auto found = context.reasons.find(stall.reason);
        if (found == context.reasons.end()) {
          const Context::Reason unknown{kept_name("reason " + std::to_string(stall.reason)), false};
          found = context.reasons.emplace(stall.reason, unknown).first;
        }
        const char* const name = found->second.name;
        auto known = std::ranges::find(counts, name, &Counted::name);
        if (known == counts.end()) known = counts.insert(known, {name, 0, 0});
        (found->second.not_issued ? known->latency : known->count) += stall.samples;
      }
      for (const auto& [name, count, latency] : counts) {
        if (count + latency == 0) continue;
        batch.samples.push_back({row->second, pc.correlation_id, pc.code, pc.offset, name, std::max(count, latency),
                                 name == nullptr ? 0 : std::min(latency, std::max(count, latency))});
      }
    }
    samples_.give(std::move(batch));
  } catch (...) {
    gpu::count_loss(LossKind::kInstructionSamplesDropped, 1, "Samples could not be kept for lack of memory.");
  }
}

bool PcSampler::stop() {
  wanted_.store(false, std::memory_order_relaxed);
  const bool ended = windows_.stop(answer_limit());
  const auto all = contexts();
  const bool answered = ended && !given_up_.load(std::memory_order_relaxed) &&
                        calls_.run(
                            [this, all] {
                              for (const std::shared_ptr<Context>& context : all) {
                                const std::lock_guard lock(context->mutex);
                                if (!context->on) continue;
                                if (context->open) finish(*context);
                                auto of = of_context(context->handle);
                                traced("cuptiPCSamplingDisable", call_.disable, &of);
                                context->on = false;
                              }
                            },
                            limit_);
  if (!answered) {
    if (!given_up_.exchange(true)) refuse(kHangs);
    return ended && !calls_.is_stuck() && asking_since_ns_.load(std::memory_order_relaxed) == 0;
  }
  for (const std::shared_ptr<Context>& context : all) {
    const std::lock_guard lock(context->mutex);
    if (context->leftover) take(*context, *context->leftover, context->leftover->data());
  }
  return true;
}

void PcSampler::abandon() noexcept {
  windows_.abandon();
  calls_.abandon();
}

InstructionDetails PcSampler::details() const {
  InstructionDetails details;
  details.mode = mode_name(options_.mode);
  details.dropped = dropped_.load(std::memory_order_relaxed);
  details.buffer_full = buffer_full_.load(std::memory_order_relaxed);
  details.other_samples = other_samples_.load(std::memory_order_relaxed);
  details.code_bytes = code_.kept_bytes();
  details.samples = samples_.counters();
  details.windows = windows_.counters();
  const std::lock_guard lock(list_mutex_);
  details.message = message_;
  return details;
}

}  // namespace leadline::nvidia
