// Which metrics the provider would count on chips, by CUPTI's plan for each,
// printed as {"GH100": ["occupancy", ...], ...}:
// `chosen_counters LIBRARY [--replay] CHIP...`. CUPTI answers without a GPU in some releases; exit 3 where it does not.
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "providers/nvidia/counter_choice.h"
#include "providers/nvidia/pm_sampling_abi.h"

namespace cupti = leadline::nvidia::cupti;

namespace {

void* library = nullptr;
bool replay = false;

template <class Params>
cupti::Result call(const char* name, Params* params) {
  params->size = sizeof *params;
  const auto function = reinterpret_cast<cupti::Result (*)(Params*)>(::dlsym(library, name));
  return function == nullptr ? 999 : function(params);
}

std::size_t passes(const char* chip, std::vector<const char*> names, cupti::Result* answer) {
  if (replay) names.push_back("gpu__time_duration.sum");
  cupti::HostInitialize made{};
  made.type = replay ? cupti::ProfilerType::kRanges : cupti::ProfilerType::kPmSampling;
  made.chip = chip;
  *answer = call("cuptiProfilerHostInitialize", &made);
  if (*answer != 0) return 0;
  cupti::HostAddMetrics add{};
  add.host = made.host;
  add.names = const_cast<const char**>(names.data());
  add.count = names.size();
  cupti::HostPasses count{};
  if (call("cuptiProfilerHostConfigAddMetrics", &add) == 0) {
    cupti::HostImageSize size{};
    size.host = made.host;
    call("cuptiProfilerHostGetConfigImageSize", &size);
    std::vector<std::uint8_t> bytes(size.bytes);
    cupti::HostImage image{};
    image.host = made.host;
    image.bytes = bytes.size();
    image.image = bytes.data();
    call("cuptiProfilerHostGetConfigImage", &image);
    count.bytes = bytes.size();
    count.image = bytes.data();
    call("cuptiProfilerHostGetNumOfPasses", &count);
  }
  cupti::HostObject gone{};
  gone.host = made.host;
  call("cuptiProfilerHostDeinitialize", &gone);
  return replay ? std::min<std::size_t>(count.passes, 1) : count.passes;
}

}  // namespace

int main(int count, char** words) {
  if (count < 2 || (library = ::dlopen(words[1], RTLD_NOW)) == nullptr) return 2;
  std::string text = "{";
  replay = count > 2 && std::string(words[2]) == "--replay";
  const int first = replay ? 3 : 2;
  for (int i = first; i < count; ++i) {
    cupti::Result answer = 0;
    const leadline::nvidia::CounterChoice choice = leadline::nvidia::choose_counters(
        leadline::nvidia::counter_names(),
        [&](const std::vector<const char*>& names) { return passes(words[i], names, &answer); });
    if (choice.taken.empty()) {
      std::printf("%s: %d\n", words[i], static_cast<int>(answer));
      return 3;
    }
    text += std::string(i > first ? ", " : "") + "\"" + words[i] + "\": [";
    for (const std::string& name : choice.taken) text += (text.back() == '[' ? "\"" : ", \"") + name + "\"";
    text += "]";
  }
  std::printf("%s}\n", text.c_str());
}
