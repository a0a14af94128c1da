// An activity record of any CUPTI version as neutral work.
#pragma once

#include "gpu/work.h"
#include "providers/nvidia/cupti_abi.h"

namespace leadline::nvidia {

// `offset_ns` is added to the record's times. Kind kNone for records that Leadline does not use and those without
// times.
gpu::Work decode(const cupti::Record& record, std::uint32_t cupti_version, std::int64_t offset_ns) noexcept;

}  // namespace leadline::nvidia
