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
#include "providers/nvidia/pc_sampling_context.h"

namespace leadline::nvidia {
namespace {

constexpr std::int64_t kFirstCostNs = 1'000'000;    // of a window, until one was measured
constexpr int kMostRounds = 256;                    // of taking records after one window
constexpr std::chrono::milliseconds kPatience{50};  // of a thread of the program with ours

// Our thread may be inside a call that waits for what a thread of the program holds, so it is not waited for without
// end. Not std::timed_mutex, whose lock call the thread sanitizer of GCC 12 does not know.
std::unique_lock<std::mutex> lock_within_patience(std::mutex& mutex) {
  const auto until = std::chrono::steady_clock::now() + kPatience;
  std::unique_lock lock(mutex, std::try_to_lock);
  while (!lock && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::microseconds{100});
    static_cast<void>(lock.try_lock());
  }
  if (!lock)
    gpu::count_loss(LossKind::kInstructionSamplesDropped, 1,
                    "Samples of instructions were lost: their context or code went while CUPTI was at work on it.");
  return lock;
}

}  // namespace

PcSampler::PcSampler(const CuptiLibrary& library, PcSamplingOptions options)
    : library_(library),
      version_(library.version()),
      options_(std::move(options)),
      call_(library.sampling()),
      code_(options_.code_folder, options_.code_bytes),
      windows_(options_.budget, options_.window_s, kFirstCostNs,
               {[this] { return ready(); }, [this] { open_window(); }, [this] { close_window(); }}) {}

PcSampler::~PcSampler() = default;

bool PcSampler::ready() const {
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
        "Instructions are not sampled launch by launch because CUPTI tells launches from 12.4 on; leave out "
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
    const bool fits = !taken && configure(*context, &why);
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
    const std::unique_lock lock = lock_within_patience(context->mutex);
    if (!lock) return;
    auto of = of_context(handle);
    if (context->open) {
      call_.stop(&of);
      context->closes(leadline_monitor_now());
      drain(*context);
      samples_.window_closes(context->device, context->windows.back().end_ns);
    }
    if (context->on) call_.disable(&of);
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
      const std::unique_lock lock = lock_within_patience(context->mutex);
      if (lock && context->on && context->open) drain(*context);
    }
  } catch (...) {
    gpu::count_loss(LossKind::kInternalError, 1, "Samples of code that was unloaded were lost for lack of memory.");
  }
}

void PcSampler::open_window() {
  for (const std::shared_ptr<Context>& context : contexts()) {
    const std::lock_guard lock(context->mutex);
    if (!context->on) continue;
    const std::int64_t now = leadline_monitor_now();
    samples_.window_opens(context->device, now);
    auto of = of_context(context->handle);
    if (const cupti::Result result = call_.start(&of); result == cupti::kSuccess) {
      context->opens(now);
    } else {
      samples_.window_closes(context->device, now);
      call_.disable(&of);
      context->on = false;
      take_out(context->handle);
      give_up(context->handle, refusal(result, "to start"));
    }
  }
}

void PcSampler::close_window() {
  for (const std::shared_ptr<Context>& context : contexts()) {
    const std::lock_guard lock(context->mutex);
    if (!context->on || !context->open) continue;
    auto of = of_context(context->handle);
    call_.stop(&of);
    context->closes(leadline_monitor_now());
    drain(*context);
    samples_.window_closes(context->device, context->windows.back().end_ns);
  }
}

void PcSampler::drain(Context& context) noexcept {
  for (int round = 0; round < kMostRounds; ++round) {
    cupti::SamplingData* data = context.records->empty();
    cupti::SamplingGetData ask{sizeof(cupti::SamplingGetData), nullptr, context.handle, data};
    const cupti::Result result = call_.get_data(&ask);
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

void PcSampler::stop() {
  windows_.stop();
  for (const std::shared_ptr<Context>& context : contexts()) {
    const std::lock_guard lock(context->mutex);
    if (!context->on) continue;
    auto of = of_context(context->handle);
    call_.disable(&of);
    context->on = false;
    take(*context, *context->leftover, context->leftover->data());
  }
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
