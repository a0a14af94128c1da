// The text with a fault planted in it (CMakeLists.txt says which): the checks of stage_test must find it, in these
// words.
#include <doctest/doctest.h>

#include "testing/simt/simt.h"
// clang-format off
#include "backends/device/patches.cu"
#include "testing/simt/device_run.h"
// clang-format on

TEST_CASE("a planted fault is found") {
  std::string told;
  for (leadline::simt::u64 seed = 1; seed <= 20 && told.empty(); ++seed) {
    leadline::simt::Shape shape;
    shape.seed = seed;
    told = leadline::simt::check(shape);
  }
  MESSAGE(told);
  CHECK(told.find(LEADLINE_PLANTED_SAYS) != std::string::npos);
}
