#include "providers/amd/counters.h"

#include <algorithm>
#include <chrono>
#include <string_view>
#include <thread>

#include "base/ids.h"
#include "gpu/clock_relation.h"
#include "gpu/measure.h"

namespace leadline::amd {
namespace {

constexpr std::size_t kBufferBytes = 8u << 20;
constexpr std::size_t kWatermark = kBufferBytes / 2;
constexpr std::size_t kMostDispatches = 1u << 14;   // of one window
constexpr std::chrono::milliseconds kPatience{20};  // for dispatches of a window that has closed
constexpr double kKib = 1024;

void share(const double* in, double* out) { out[0] = in[0] / 100; }
void kibibytes(const double* in, double* out) { out[0] = (in[0] + in[1]) * kKib; }
void sum_of_four(const double* in, double* out) { out[0] = in[0] + in[1] + in[2] + in[3]; }
void two(const double* in, double* out) {
  out[0] = in[0];
  out[1] = in[1];
}

}  // namespace

const gpu::CounterRecipes& counter_recipes() {
  using M = MetricKind;
  using Metrics = std::vector<gpu::CountedMetric>;
  constexpr auto kAmount = gpu::CounterMeaning::kAmount;
  static const auto& occupancy = *new Metrics{{M::kOccupiedTime, gpu::CounterMeaning::kShareOfWork}};
  static const auto& dram = *new Metrics{{M::kDramBytes, kAmount}};
  static const auto& matrix = *new Metrics{{M::kTensorTime, gpu::CounterMeaning::kShareOfInterval}};
  static const auto& issued = *new Metrics{{M::kWarpInstructions, kAmount}};
  // Cycles of the local data share, as NVIDIA counts passes of shared memory: all of them, and those of conflicts.
  static const auto& shared = *new Metrics{{M::kSharedWavefronts, kAmount}, {M::kBankConflicts, kAmount}};
  static const auto& made = *new gpu::CounterRecipes{
      {"occupancy", {{{"OccupancyPercent"}, occupancy, share}}},
      {"dram", {{{"FETCH_SIZE", "WRITE_SIZE"}, dram, kibibytes}, {{"FetchSize", "WriteSize"}, dram, kibibytes}}},
      {"tensor", {{{"MfmaUtil"}, matrix, share}}},
      {"l2", {}},
      {"issue", {{{"SQ_INSTS_VALU", "SQ_INSTS_SALU", "SQ_INSTS_SMEM", "SQ_INSTS_LDS"}, issued, sum_of_four}}},
      {"shared", {{{"SQ_LDS_IDX_ACTIVE", "SQ_LDS_BANK_CONFLICT"}, shared, two}}},
      {"global", {}},
  };
  return made;
}

void DispatchCounter::refuse(const std::string& sentence) {
  {
    const std::lock_guard lock(mutex_);
    if (said_.message.find(sentence) != std::string::npos) return;  // of another device
    said_.message += (said_.message.empty() ? "" : " ") + sentence;
  }
  gpu::count_loss(LossKind::kProviderUnavailable, 1, sentence.c_str());
}

bool DispatchCounter::set_up(const GpuAgent& gpu, std::string* why) {
  std::vector<sdk::CounterId> offered;
  sdk_->counters_of(
      gpu.id,
      [](std::uint64_t, sdk::CounterId* all, std::size_t count, void* data) -> sdk::Status {
        try {
          static_cast<std::vector<sdk::CounterId>*>(data)->assign(all, all + count);
        } catch (...) {
        }
        return sdk::kSuccess;
      },
      &offered);
  std::map<std::string, sdk::CounterId, std::less<>> known;
  for (const sdk::CounterId id : offered) {
    sdk::CounterInfo info{};
    if (sdk_->counter_info(id, sdk::kCounterInfoVersion, &info) == sdk::kSuccess && info.name) known[info.name] = id;
  }
  const std::string begin = "GPU metrics are not counted on " + gpu.architecture + " because ";
  if (known.empty()) {
    *why = begin + "rocprofiler-sdk names no counter of it; install the package of its counters (aqlprofile).";
    return false;
  }
  sdk::Status refused = sdk::kSuccess;
  const auto config_of = [&](const std::vector<const char*>& names, sdk::CounterConfig* config) -> std::size_t {
    std::vector<sdk::CounterId> ids;
    for (const char* name : names) {
      const auto found = known.find(name);
      if (found == known.end()) return 0;
      ids.push_back(found->second);
    }
    const sdk::Status status = sdk_->create_config(gpu.id, ids.data(), ids.size(), config);
    if (status == sdk::kSuccess) return 1;
    if (status != sdk::kExceedsHardware) refused = status;
    return 2;
  };
  Device device;
  device.agent = gpu.id;
  device.index = gpu.info.index;
  device.choice = gpu::choose_counters(counter_recipes(), asked_, [&](const std::vector<const char*>& names) {
    sdk::CounterConfig tried;
    const std::size_t passes = config_of(names, &tried);
    if (passes == 1 && sdk_->destroy_config) sdk_->destroy_config(tried);
    return passes;
  });
  const std::vector<const char*> vendors = device.choice.vendors();
  if (vendors.empty() || config_of(vendors, &device.config) != 1) {
    const char* said = sdk_->get_status_string && refused != sdk::kSuccess ? sdk_->get_status_string(refused) : nullptr;
    *why = begin + (said ? std::string("rocprofiler-sdk refuses it (") + said + ")."
                         : "it counts none of " + gpu::listed(asked_) + ".");
    return false;
  }
  for (const char* name : vendors) device.counters.push_back(known.find(name)->second.handle);
  if (!device.choice.unknown.empty()) {
    refuse("This device (" + gpu.architecture + ") does not count " + gpu::listed(device.choice.unknown) + ".");
  }
  if (!device.choice.left_out.empty()) {
    refuse("This device (" + gpu.architecture + ") cannot count " + gpu::listed(device.choice.left_out) +
           " together with " + gpu::listed(device.choice.taken) + "; ask for them in a run of their own.");
  }
  said_.chips += (said_.chips.empty() ? "" : ", ") + gpu.architecture;
  said_.metrics = device.choice.taken;
  devices_.push_back(std::move(device));
  return true;
}

bool DispatchCounter::set_up(const SdkFunctions& sdk, std::uint32_t version, const Agents& agents,
                             sdk::BufferCallback callback) {
  sdk_ = &sdk;
  constexpr std::uint32_t kFirstRelease = 10000;
  old_ = version < kFirstRelease;
  if (!sdk.counters_of || !sdk.counter_info || !sdk.counter_of_instance || !sdk.create_config ||
      !sdk.count_dispatches) {
    refuse("GPU metrics are not counted because rocprofiler-sdk " + sdk_version_name(version) +
           " has no functions for it; install ROCm 6.3 or later.");
    return false;
  }
  if (sdk.create_context(&context_) != sdk::kSuccess ||
      sdk.create_buffer(context_, kBufferBytes, kWatermark, sdk::BufferPolicy::kDiscard, callback, nullptr, &buffer_) !=
          sdk::kSuccess) {
    refuse("GPU metrics are not counted because rocprofiler-sdk refuses a buffer for them.");
    return false;
  }
  for (const GpuAgent& gpu : agents.gpus()) {
    if (std::string why; !set_up(gpu, &why)) refuse(why);
  }
  if (agents.gpus().empty()) refuse("GPU metrics are not counted because rocprofiler-sdk shows no device.");
  if (devices_.empty()) return false;
  const sdk::Status status = sdk.count_dispatches(
      context_, buffer_,
      [](sdk::Dispatching dispatch, sdk::CounterConfig* config, sdk::UserData*, void* data) {
        static_cast<DispatchCounter*>(data)->choose(dispatch, config);
      },
      this);
  if (status == sdk::kSuccess) return true;
  const char* said = sdk.get_status_string ? sdk.get_status_string(status) : nullptr;
  refuse(std::string("GPU metrics are not counted because rocprofiler-sdk refuses to count dispatches (") +
         (said ? said : "status " + std::to_string(status)) +
         "); counters may be another process's, or this user lacks the groups `render` and `video`.");
  devices_.clear();
  return false;
}

const DispatchCounter::Device* DispatchCounter::device_of(std::uint64_t agent) const noexcept {
  const auto found = std::ranges::find(devices_, agent, &Device::agent);
  return found == devices_.end() ? nullptr : &*found;
}

void DispatchCounter::choose(const sdk::Dispatching& dispatch, sdk::CounterConfig* config) noexcept {
  const std::uint64_t agent =
      old_ ? reinterpret_cast<const sdk::OldDispatching&>(dispatch).info.agent : dispatch.info.agent;
  const Device* const device = device_of(agent);
  if (device == nullptr || config == nullptr) return;
  *config = device->config;
  asked_for_.fetch_add(1, std::memory_order_relaxed);
}

// Under mutex_.
std::uint64_t DispatchCounter::counter_of(std::uint64_t instance) {
  const auto [found, is_new] = counter_of_instance_.try_emplace(instance, 0);
  if (is_new) {
    sdk::CounterId id;
    if (sdk_->counter_of_instance(instance, &id) == sdk::kSuccess) found->second = id.handle;
  }
  return found->second;
}

void DispatchCounter::take(sdk::RecordHeader** headers, std::size_t count, std::uint64_t dropped) noexcept try {
  const std::lock_guard lock(mutex_);
  std::uint64_t lost = dropped;
  const auto begin = [&](const auto& record) {
    ++counted_dispatches_;
    const Device* const device = device_of(record.info.agent);
    if (device == nullptr || record.end <= record.start || counted_.size() >= kMostDispatches) {
      ++lost;
      return;
    }
    Counted& counted = counted_[record.info.dispatch];
    counted.device = device;
    counted.start = static_cast<std::int64_t>(record.start);
    counted.end = static_cast<std::int64_t>(record.end);
  };
  for (std::size_t i = 0; i < count; ++i) {
    const sdk::RecordHeader& header = *headers[i];
    if (header.category != sdk::Category::kCounters || !header.payload) continue;
    if (header.kind == sdk::kCountedDispatch) {
      old_ ? begin(*static_cast<const sdk::OldCountedDispatch*>(header.payload))
           : begin(*static_cast<const sdk::CountedDispatch*>(header.payload));
    } else if (header.kind == sdk::kCounterValue) {
      const auto& value = *static_cast<const sdk::CounterValue*>(header.payload);
      const auto found = counted_.find(value.dispatch);
      if (found != counted_.end()) found->second.values[counter_of(value.instance)] += value.value;
    }
  }
  said_.dropped += lost;
  gpu::count_loss(LossKind::kCountersDropped, lost, "rocprofiler-sdk has no values of kernels that were counted.");
} catch (...) {
  gpu::count_loss(LossKind::kCountersDropped, count, "There was no memory for values of counters.");
}

void DispatchCounter::open() {
  opened_ns_ = leadline_monitor_now();
  for (const Device& device : devices_) samples_.window_opens(device.index, opened_ns_);
  if (sdk_->start_context(context_) != sdk::kSuccess) {
    refuse("GPU metrics are not counted because rocprofiler-sdk does not start to; another process may count.");
  }
}

void DispatchCounter::close() {
  using Clock = std::chrono::steady_clock;
  sdk_->stop_context(context_);
  serialised_ns_.fetch_add(leadline_monitor_now() - opened_ns_, std::memory_order_relaxed);
  const auto until = Clock::now() + kPatience;
  const auto is_whole = [this] {
    const std::lock_guard lock(mutex_);
    return counted_dispatches_ >= asked_for_.load(std::memory_order_relaxed);
  };
  do {
    sdk_->flush_buffer(buffer_);
    if (is_whole()) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  } while (Clock::now() < until);
  give_batches();
  const std::int64_t now = leadline_monitor_now();
  for (const Device& device : devices_) samples_.window_closes(device.index, now);
}

void DispatchCounter::give_batches() {
  const gpu::ClockRelation clock =
      gpu::measure_clock([this](std::uint64_t* ns) { return sdk_->get_timestamp(ns) == sdk::kSuccess; });
  std::map<const Device*, std::vector<const Counted*>> by_device;
  const std::lock_guard lock(mutex_);
  const std::uint64_t asked = asked_for_.exchange(0, std::memory_order_relaxed);
  if (asked > counted_dispatches_) {
    said_.dropped += asked - counted_dispatches_;
    gpu::count_loss(LossKind::kCountersDropped, asked - counted_dispatches_,
                    "Kernels that were counted had not ended soon after their window.");
  }
  counted_dispatches_ = 0;
  for (const auto& [dispatch, counted] : counted_) by_device[counted.device].push_back(&counted);
  for (auto& of_device : by_device) {
    const Device* const device = of_device.first;
    std::vector<const Counted*>& all = of_device.second;
    std::ranges::sort(all, {}, [](const Counted* one) { return one->start; });
    gpu::CounterBatch batch;
    batch.device = device->index;
    batch.metrics = device->choice.metrics();
    const std::vector<const char*> vendors = device->choice.vendors();
    for (const Counted* one : all) {
      batch.intervals.push_back({one->start + clock.offset_ns, one->end + clock.offset_ns});
      const auto value_of = [&](const char* vendor) {
        const auto at = static_cast<std::size_t>(
            std::ranges::find_if(vendors, [&](const char* name) { return std::string_view(name) == vendor; }) -
            vendors.begin());
        const auto found = one->values.find(device->counters[at]);
        return found == one->values.end() ? 0.0 : found->second;
      };
      for (const gpu::CounterRecipe* recipe : device->choice.recipes) {
        std::vector<double> in;
        in.reserve(recipe->vendors.size());
        for (const char* vendor : recipe->vendors) in.push_back(value_of(vendor));
        std::vector<double> out(recipe->metrics.size());
        recipe->compute(in.data(), out.data());
        batch.values.insert(batch.values.end(), out.begin(), out.end());
      }
    }
    if (clock.known) samples_.give(std::move(batch));
  }
  counted_.clear();
}

CounterDetails DispatchCounter::details() const {
  const std::lock_guard lock(mutex_);
  CounterDetails details = said_;
  details.samples = samples_.counters();
  return details;
}

}  // namespace leadline::amd
