#include "providers/nvidia/pc_sampling_context.h"

#include <algorithm>
#include <set>

#include "providers/nvidia/call_trace.h"
#include "providers/nvidia/sampling_refusal.h"

namespace leadline::nvidia {
const char* kept_name(std::string&& name) {
  static std::mutex mutex;
  static auto& names = *new std::set<std::string>;
  const std::lock_guard lock(mutex);
  return names.insert(std::move(name)).first->c_str();
}

const char* mode_name(cupti::SamplingMode mode) {
  return mode == cupti::SamplingMode::kContinuous ? "continuous" : "serialised";
}

std::string stall_name(std::string_view vendors, bool* not_issued) {
  constexpr std::string_view kPrefix = "smsp__pcsamp_warps_issue_stalled_";
  constexpr std::string_view kNotIssued = "_not_issued";
  std::string_view name = vendors;
  if (name.starts_with(kPrefix)) name.remove_prefix(kPrefix.size());
  *not_issued = name.ends_with(kNotIssued);
  if (*not_issued) name.remove_suffix(kNotIssued.size());
  return std::string(name);
}

std::string kernel_of(std::string_view function) {
  const auto end = function.find('$', 1);
  return function.starts_with('$') && end != std::string_view::npos ? std::string(function.substr(1, end - 1)) : "";
}

std::string PcSampler::refusal(cupti::Result result, const char* doing) const {
  return sampling_refusal(library_, "Instructions are not sampled", "compute capability 7.0", result, doing);
}

bool PcSampler::configure(Context& context, std::string* why) {
  auto of = of_context(context.handle);
  if (const cupti::Result result = traced("cuptiPCSamplingEnable", call_.enable, &of); result != cupti::kSuccess) {
    *why = refusal(result, "to begin");
    return false;
  }
  context.on = true;
  learn_reasons(context);
  const std::size_t stride = version_ < cupti::kVersion12_4 ? cupti::kPcRecordBytes12_0 : sizeof(cupti::PcRecord);
  const std::size_t reasons = std::max<std::size_t>(context.reasons.size(), 64);
  context.records = std::make_unique<Records>(stride, reasons);
  context.leftover = std::make_unique<Records>(stride, reasons);
  using A = cupti::SamplingAttribute;
  std::vector<cupti::SamplingSetting> settings;
  const auto add = [&](A attribute) -> cupti::SamplingSetting& {
    cupti::SamplingSetting setting{};
    setting.attribute = attribute;
    settings.push_back(setting);
    return settings.back();
  };
  add(A::kMode).value.choice = static_cast<std::int32_t>(options_.mode);
  add(A::kStartStop).value.number = 1;
  add(A::kOutputFormat).value.choice = cupti::kOutputParsed;
  if (options_.switches.scratch_bytes > 0) add(A::kScratchBuffer).value.size = options_.switches.scratch_bytes;
  add(A::kDataBuffer).value.buffer = context.leftover->empty();
  if (options_.period != 0) add(A::kPeriod).value.number = options_.period;
  const bool sized = options_.switches.hardware_bytes > 0;
  if (sized)
    add(A::kHardwareBuffer).value.size = options_.switches.hardware_bytes;  // the last: some releases refuse it
  const auto apply = [&] {
    cupti::SamplingSettings all{sizeof(cupti::SamplingSettings), nullptr, context.handle, settings.size(),
                                settings.data()};
    return traced("cuptiPCSamplingSetConfigurationAttribute", call_.configure, &all);
  };
  cupti::Result result = apply();
  if (result != cupti::kSuccess && sized && settings.back().status != cupti::kSuccess) {
    settings.pop_back();
    result = apply();
  }
  if (result == cupti::kSuccess) return true;
  if (settings.front().status != cupti::kSuccess) {
    *why = std::string("Instructions are not sampled because CUPTI refused the mode ") + mode_name(options_.mode) +
           " (" + library_.describe(result) + "); try `--instructions=" +
           (options_.mode == cupti::SamplingMode::kContinuous ? "serialised" : "continuous") + "`.";
  } else {
    *why = refusal(result, "the settings");
  }
  traced("cuptiPCSamplingDisable", call_.disable, &of);
  context.on = false;
  return false;
}

void PcSampler::learn_reasons(Context& context) {
  std::size_t count = 0;
  cupti::StallReasonCount how_many{sizeof(cupti::StallReasonCount), nullptr, context.handle, &count};
  constexpr std::size_t kMost = 1024;
  if (traced("cuptiPCSamplingGetNumStallReasons", call_.stall_reason_count, &how_many) != cupti::kSuccess ||
      count == 0 || count > kMost)
    return;
  std::vector<std::uint32_t> indices(count);
  std::vector<char> texts(count * cupti::kStallNameSize);
  std::vector<char*> names(count);
  for (std::size_t i = 0; i < count; ++i) names[i] = &texts[i * cupti::kStallNameSize];
  cupti::StallReasons all{sizeof(cupti::StallReasons), nullptr, context.handle, count, indices.data(), names.data()};
  if (traced("cuptiPCSamplingGetStallReasons", call_.stall_reasons, &all) != cupti::kSuccess) return;
  for (std::size_t i = 0; i < count; ++i) {
    names[i][cupti::kStallNameSize - 1] = '\0';
    Context::Reason reason;
    std::string name = stall_name(names[i], &reason.not_issued);
    if (name != "selected") reason.name = kept_name(std::move(name));
    context.reasons[indices[i]] = reason;
  }
}

}  // namespace leadline::nvidia
