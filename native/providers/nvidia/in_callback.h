// The measuring that CUPTI's callbacks may use, see gpu/in_callback.h.
#pragma once

#include "gpu/in_callback.h"

namespace leadline::nvidia {

class Measuring;
using InCallback = gpu::InCallback<Measuring>;

}  // namespace leadline::nvidia
