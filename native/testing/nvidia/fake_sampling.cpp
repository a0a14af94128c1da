#include "testing/nvidia/fake_sampling.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "testing/nvidia/fake_gpu.h"

namespace leadline::testing {
namespace {

// In the order of no release: readers must go by the names.
constexpr const char* kReasons[] = {"selected",
                                    "wait",
                                    "long_scoreboard",
                                    "short_scoreboard",
                                    "math_pipe_throttle",
                                    "lg_throttle",
                                    "mio_throttle",
                                    "barrier",
                                    "branch_resolving",
                                    "dispatch_stall",
                                    "drain",
                                    "imc_miss",
                                    "membar",
                                    "misc",
                                    "no_instructions",
                                    "not_selected",
                                    "sleeping",
                                    "tex_throttle",
                                    "warpgroup_arrive"};

}  // namespace

std::span<const char* const> fake_stall_names() { return kReasons; }

std::uint32_t fake_stall_reason(const std::string& name) {
  for (std::size_t i = 0; i < std::size(kReasons); ++i) {
    if (name == kReasons[i]) return static_cast<std::uint32_t>(2 * i);
  }
  return static_cast<std::uint32_t>(std::stoul(name));
}

const char* FakeSampling::name(const std::string& text) {
  for (const std::string& known : names) {
    if (known == text) return known.c_str();
  }
  return names.emplace_back(text).c_str();
}

void FakeSampling::ran(void* context, const std::string& kernel, std::uint32_t correlation) {
  const auto found = contexts.find(context);
  const auto set = pcs.find(kernel);
  if (found == contexts.end() || !found->second.open || set == pcs.end()) return;
  OfContext& in = found->second;
  const bool serialised = in.mode == static_cast<std::int32_t>(cupti::SamplingMode::kSerialised);
  for (const FakePc& pc : set->second) {
    const auto same = std::find_if(in.pending.begin(), in.pending.end(), [&](const Pending& p) {
      return !serialised && p.range == in.range && p.code == code && p.pc.function == pc.function &&
             p.pc.offset == pc.offset && p.pc.reason == pc.reason;
    });
    if (same != in.pending.end()) {
      ++same->launches;
    } else {
      in.pending.push_back({pc, code, in.range, serialised ? correlation : 0, 1});
    }
  }
}

void FakeGpu::load_code(const void* image, std::size_t bytes, std::int32_t device) {
  FakeContext* in = context(device);
  if (sampling.hash != nullptr) sampling.hash(image, bytes, &sampling.code);
  const auto which = static_cast<std::uint32_t>(cupti::Resource::kModuleLoaded);
  if (!is_enabled(cupti::Domain::kResource, which)) return;
  cupti::ModuleData module{1, bytes, static_cast<const char*>(image)};
  const cupti::ResourceData resource{in, nullptr, &module};
  callback(callback_user, cupti::Domain::kResource, which, &resource);
}

void FakeGpu::unload_code(std::int32_t device) {
  const auto which = static_cast<std::uint32_t>(cupti::Resource::kModuleUnloadStarting);
  if (!is_enabled(cupti::Domain::kResource, which)) return;
  cupti::ModuleData module{1, 0, nullptr};
  const cupti::ResourceData resource{context(device), nullptr, &module};
  callback(callback_user, cupti::Domain::kResource, which, &resource);
}

}  // namespace leadline::testing
