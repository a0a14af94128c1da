#include "providers/amd/pc_sampling.h"

#include <algorithm>
#include <bit>
#include <set>
#include <utility>

#include "base/ids.h"
#include "gpu/measure.h"
#include "providers/amd/correlation.h"

namespace leadline::amd {
namespace {

constexpr std::size_t kBufferBytes = 8u << 20;
constexpr std::size_t kWatermark = kBufferBytes / 2;
constexpr std::uint64_t kCycles = 1u << 17;      // between two samples of a compute unit
constexpr std::uint64_t kMicroseconds = 100;     // where traps take them
constexpr std::size_t kMostPlaces = 1u << 18;    // distinct ones in one window
constexpr std::uint32_t kNoReason = UINT32_MAX;  // issued, or not told

// In the SDK's order, by schema/leadline.toml.
constexpr std::array<const char*, 10> kReasons{
    nullptr,        "no_instruction_available", "alu_dependency",       "waitcnt",    "internal_instruction",
    "barrier_wait", "arbiter_not_win",          "arbiter_win_ex_stall", "other_wait", "sleep_wait"};

std::uint64_t interval_of(const sdk::SamplingConfiguration& offered) {
  const std::uint64_t wanted = offered.method == sdk::SamplingMethod::kStochastic ? kCycles : kMicroseconds;
  std::uint64_t interval = std::clamp<std::uint64_t>(wanted, offered.least, std::max(offered.least, offered.most));
  if (offered.method == sdk::SamplingMethod::kStochastic) {
    interval = std::bit_floor(interval);  // what some releases ask for, and say only in flags
    if (interval < offered.least) interval <<= 1;
  }
  return interval;
}

}  // namespace

const char* amd_stall_name(std::uint32_t reason) {
  if (reason == kNoReason || reason == 0) return nullptr;
  if (reason < kReasons.size()) return kReasons[reason];
  static std::mutex mutex;
  static auto& names = *new std::set<std::string>;
  const std::lock_guard lock(mutex);
  return names.insert("reason " + std::to_string(reason)).first->c_str();
}

bool PcSampler::configure(const SdkFunctions& sdk, const GpuAgent& gpu, std::string* why) {
  std::vector<sdk::SamplingConfiguration> offered;
  sdk::Status status = sdk.sampling_configurations(
      gpu.id,
      [](const sdk::SamplingConfiguration* all, std::size_t count, void* data) -> sdk::Status {
        auto& to = *static_cast<std::vector<sdk::SamplingConfiguration>*>(data);
        try {
          to.assign(all, all + count);
        } catch (...) {
        }
        return sdk::kSuccess;
      },
      &offered);
  std::ranges::stable_sort(offered, {}, [](const auto& one) { return static_cast<std::int32_t>(one.method); });
  for (const sdk::SamplingConfiguration& one : offered) {
    if (one.method == sdk::SamplingMethod::kNone) continue;
    status = sdk.configure_sampling(context_, gpu.id, one.method, one.unit, interval_of(one), buffer_, 0);
    if (status != sdk::kSuccess) continue;
    said_.mode = one.method == sdk::SamplingMethod::kStochastic ? "stochastic" : "host-trap";
    return true;
  }
  const std::string begin = "Instructions are not sampled on " + gpu.architecture + " because ";
  const char* text = sdk.get_status_string ? sdk.get_status_string(status) : nullptr;
  switch (status) {
    case sdk::kSuccess:
      *why = begin + "the device has no way to (MI200 and later have).";
      break;
    case sdk::kNotImplemented:
      *why = begin +
             "rocprofiler-sdk has it as a beta that, by AMD's words, may freeze a device; who accepts that sets "
             "ROCPROFILER_PC_SAMPLING_BETA_ENABLED=1.";
      break;
    case sdk::kIncompatibleKernel:
      *why = begin + "the amdgpu driver is too old for it; install the driver of the ROCm release.";
      break;
    case sdk::kPermissionDenied:
      *why = begin + "the driver does not permit it to this user; put the user into the groups `render` and `video`.";
      break;
    case sdk::kNotAvailable:
      *why = begin + "another process samples it in another way, or a debugger runs this one; end that first.";
      break;
    default:
      *why = begin + "rocprofiler-sdk refused it (" + (text ? text : "status " + std::to_string(status)) + ").";
  }
  return false;
}

bool PcSampler::set_up(const SdkFunctions& sdk, const Agents& agents, sdk::BufferCallback callback) {
  sdk_ = &sdk;
  agents_ = &agents;
  std::string why;
  if (!sdk.sampling_configurations || !sdk.configure_sampling) {
    why =
        "Instructions are not sampled because this rocprofiler-sdk has no functions for it; install ROCm 6.4 or later.";
  } else if (sdk.create_context(&context_) != sdk::kSuccess ||
             sdk.create_buffer(context_, kBufferBytes, kWatermark, sdk::BufferPolicy::kDiscard, callback, nullptr,
                               &buffer_) != sdk::kSuccess) {
    why = "Instructions are not sampled because rocprofiler-sdk refuses a buffer for them.";
  } else {
    for (const GpuAgent& gpu : agents.gpus()) {
      if (configure(sdk, gpu, &why)) devices_.push_back(gpu.info.index);
    }
    if (agents.gpus().empty()) why = "Instructions are not sampled because rocprofiler-sdk shows no device.";
  }
  works_ = !devices_.empty();
  if (!why.empty()) gpu::count_loss(LossKind::kProviderUnavailable, 1, why.c_str());
  const std::lock_guard lock(mutex_);
  said_.message = why;
  return works_;
}

void PcSampler::code_loaded(const sdk::CodeObjectLoad& load) noexcept try {
  std::uint64_t hash = 0;
  if (load.size >= sizeof load && load.storage == sdk::kInMemory && load.memory.base != 0) {
    const auto* const image = reinterpret_cast<const void*>(load.memory.base);
    hash = gpu::CodeObjects::identify(image, load.memory.bytes);
    code_.keep(image, load.memory.bytes);
    code_.write_kept();
  }
  const std::lock_guard lock(mutex_);
  Code& code = codes_[load.code_object];
  code.hash = hash;
  code.base = load.load_base;
  code.device = agents_ ? agents_->device(load.agent) : -1;
} catch (...) {
  gpu::count_loss(LossKind::kInternalError, 1, "There was no memory to remember code of the device.");
}

void PcSampler::kernel_loaded(const sdk::KernelSymbol& symbol) noexcept try {
  if (symbol.size < sizeof(sdk::PlacedKernelSymbol) || symbol.name == nullptr) return;
  const auto& placed = reinterpret_cast<const sdk::PlacedKernelSymbol&>(symbol);
  std::string_view name = symbol.name;
  if (name.ends_with(".kd")) name.remove_suffix(3);
  const std::lock_guard lock(mutex_);
  const auto found = codes_.find(symbol.code_object);
  if (found == codes_.end() || placed.address < found->second.base) return;
  std::vector<Function>& functions = found->second.functions;
  const Function made{std::string(name), placed.address - found->second.base};
  functions.insert(std::ranges::upper_bound(functions, made.begin, {}, &Function::begin), made);
} catch (...) {
  gpu::count_loss(LossKind::kInternalError, 1, "There was no memory to remember kernels of the device.");
}

// Under mutex_.
void PcSampler::add(const sdk::SampledPlace& place, std::uint64_t external, std::uint32_t reason, bool latency) {
  if (place.code_object == 0 || external == 0 || external == Correlation::kNotMeasured) {
    ++said_.other_samples;
    return;
  }
  const Key key{place.code_object, place.offset, Correlation::unpack(external).call, reason};
  if (counts_.size() >= kMostPlaces && !counts_.contains(key)) {
    ++said_.dropped;
    return;
  }
  Count& count = counts_[key];
  ++count.samples;
  count.latency += latency ? 1 : 0;
}

void PcSampler::take(sdk::RecordHeader** headers, std::size_t count, std::uint64_t dropped) noexcept try {
  const std::lock_guard lock(mutex_);
  const std::uint64_t before = said_.dropped;
  said_.dropped += dropped;
  for (std::size_t i = 0; i < count; ++i) {
    const sdk::RecordHeader& header = *headers[i];
    if (header.category != sdk::Category::kPcSampling || !header.payload) continue;
    const std::uint64_t size = *static_cast<const std::uint64_t*>(header.payload);
    if (size == sizeof(sdk::HostTrapSample)) {
      const auto& sample = *static_cast<const sdk::HostTrapSample*>(header.payload);
      add(sample.place, sample.correlation_external.value, kNoReason, false);
    } else if (size == sizeof(sdk::StochasticSample)) {
      const auto& sample = *static_cast<const sdk::StochasticSample*>(header.payload);
      const bool issued = (sample.issued_and_type & 1) != 0;
      add(sample.place, sample.correlation_external.value, issued ? kNoReason : sample.snapshot & 0xf,
          !issued && (sample.snapshot & sdk::kIssuedToAny) == 0);
    } else {
      ++said_.other_samples;  // invalid, or of a form that is not known
    }
  }
  gpu::count_loss(LossKind::kInstructionSamplesDropped, said_.dropped - before,
                  "The device took more samples of instructions than rocprofiler-sdk and Leadline keep.");
} catch (...) {
  gpu::count_loss(LossKind::kInstructionSamplesDropped, count, "There was no memory for samples of instructions.");
}

void PcSampler::open() {
  opened_ns_ = leadline_monitor_now();
  for (const std::int32_t device : devices_) samples_.window_opens(device, opened_ns_);
  sdk_->start_context(context_);
}

void PcSampler::close() {
  sdk_->stop_context(context_);
  sdk_->flush_buffer(buffer_);
  const std::int64_t now = leadline_monitor_now();
  give_batches(opened_ns_, now);
  for (const std::int32_t device : devices_) samples_.window_closes(device, now);
}

void PcSampler::give_batches(std::int64_t start_ns, std::int64_t end_ns) {
  std::map<std::int32_t, gpu::SampleBatch> batches;
  std::map<std::pair<std::int32_t, std::string>, std::uint32_t> functions;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, count] : counts_) {
      const auto code = codes_.find(key.code_object);
      const Function* of = nullptr;
      if (code != codes_.end()) {
        const auto& all = code->second.functions;
        const auto next = std::ranges::upper_bound(all, key.offset, {}, &Function::begin);
        if (next != all.begin()) of = &*std::prev(next);
      }
      if (of == nullptr || code->second.device < 0) {
        said_.other_samples += count.samples;
        continue;
      }
      gpu::SampleBatch& batch = batches[code->second.device];
      const auto [row, is_new] =
          functions.try_emplace({code->second.device, of->name}, static_cast<std::uint32_t>(batch.functions.size()));
      if (is_new) batch.functions.push_back(of->name);
      batch.samples.push_back({row->second, key.call, code->second.hash, key.offset - of->begin,
                               amd_stall_name(key.reason), count.samples, count.latency});
    }
    counts_.clear();
  }
  for (auto& [device, batch] : batches) {
    batch.device = device;
    batch.start_ns = start_ns;
    batch.end_ns = end_ns;
    samples_.give(std::move(batch));
  }
}

InstructionDetails PcSampler::details() const {
  const std::lock_guard lock(mutex_);
  InstructionDetails details = said_;
  details.samples = samples_.counters();
  details.code_bytes = code_.kept_bytes();
  return details;
}

}  // namespace leadline::amd
