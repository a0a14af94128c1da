#include "providers/nvidia/pc_switches.h"

#include <cstdlib>
#include <initializer_list>
#include <string_view>
#include <utility>

namespace leadline::nvidia {
namespace {

template <class Value>
void take(const char* name, Value* value, std::initializer_list<std::pair<std::string_view, Value>> choices) {
  const char* const text = std::getenv(name);
  if (text == nullptr) return;
  for (const auto& [word, meant] : choices) {
    if (word == text) *value = meant;
  }
}

template <class Value>
void take(const char* name, Value* value, std::uint64_t unit) {
  const char* const text = std::getenv(name);
  if (text == nullptr) return;
  char* end = nullptr;
  const unsigned long long number = std::strtoull(text, &end, 10);
  if (end != text && *end == '\0') *value = static_cast<Value>(number * unit);
}

}  // namespace

PcSwitches pc_switches() {
  PcSwitches to;
  take("LEADLINE_PC_PLACE", &to.place,
       {{"launch", SamplingPlace::kLaunch},
        {"helper", SamplingPlace::kHelper},
        {"created", SamplingPlace::kCreated},
        {"window", SamplingPlace::kWindow}});
  take("LEADLINE_PC_SYNC", &to.wait,
       {{"helper", SamplingWait::kHelper}, {"launch", SamplingWait::kLaunch}, {"off", SamplingWait::kNobody}});
  take("LEADLINE_PC_RECORDS", &to.records,
       {{"kernels", SampledRecords::kKernels}, {"all", SampledRecords::kAll}, {"none", SampledRecords::kNone}});
  take("LEADLINE_PC_CODE", &to.names_code, {{"callback", true}, {"off", false}});
  take("LEADLINE_PC_AFTER", &to.after, 1);
  take("LEADLINE_PC_LAUNCHES", &to.at_once, 1);
  take("LEADLINE_PC_HARDWARE_MB", &to.hardware_bytes, 1u << 20);
  take("LEADLINE_PC_SCRATCH_MB", &to.scratch_bytes, 1u << 20);
  if (const char* const mode = std::getenv("LEADLINE_PC_MODE")) to.mode = mode;
  return to;
}

}  // namespace leadline::nvidia
