// Why CUPTI does not sample a device, in words with the way out.
#pragma once

#include <string>

#include "providers/nvidia/cupti_library.h"

namespace leadline::nvidia {

// `what` begins the sentence ("Instructions are not sampled"), `needs` says what a device must be, `doing` what was
// asked.
std::string sampling_refusal(const CuptiLibrary& library, const std::string& what, const char* needs,
                             cupti::Result result, const char* doing);

}  // namespace leadline::nvidia
