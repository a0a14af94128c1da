// The text of backends/device itself, for the host.
#include "testing/simt/simt.h"
// clang-format off
#include "backends/device/patches.cu"
