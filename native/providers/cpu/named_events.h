// Events of a processor that Leadline has no name of its own for, as perf and libpfm (and PAPI by it) name them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace leadline::cpu {

// As perf_event_attr has them.
struct EventCode {
  uint32_t type = 0;
  uint64_t config = 0;
  uint64_t config1 = 0;
  uint64_t config2 = 0;
};

// What PAPI calls a counter that perf has under a name of its own with the same meaning; empty for any other.
std::string_view perf_name_of_papi(std::string_view name) noexcept;

// Of `rHEX`, of `PMU/TERM,.../` with the terms that the kernel describes below `devices`, or of a name of libpfm's.
// Nothing where the name means no event here; `why` is then the sentence, empty for a name of none of these forms.
std::optional<EventCode> event_named(const std::string& name, std::string* why,
                                     const std::filesystem::path& devices = "/sys/bus/event_source/devices");

}  // namespace leadline::cpu
