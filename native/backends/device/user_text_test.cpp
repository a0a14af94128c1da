// A tool's `gpu` text among the patches: it meets each element that is stored, with its value.
#include <doctest/doctest.h>

#include <cmath>

#include "testing/simt/simt.h"
// clang-format off
#include "backends/device/tracker.h"
#include "backends/device/user_text.h"

static leadline::device::u64 g_elements;
static double g_greatest;

LL_STORE(a) {
  ++g_elements;
  if (ll_is_float(a.object) && ll_isnan(a)) ll_count(a.object);
  if (ll_is_float(a.object) && !ll_isnan(a) && !ll_isinf(a) && a.value > g_greatest) g_greatest = a.value;
}

#define LEADLINE_USER_STORE 1
#include "backends/device/patches.cu"
#include "testing/simt/device_run.h"
// clang-format on

using namespace leadline;
using namespace leadline::simt;

TEST_CASE("what a text counts is what the values say, by object") {
  Shape shape;
  shape.steps = 300;
  const Program program = draw(shape);
  const Expected expected = expect(program);
  Memory memory(program, device::kWantPages, program.ranges.size(), program.words, 0, 0);
  REQUIRE(launch(program, memory, 1, 8) == "");
  u64 nan = 0;
  for (u32 index = 0; index < memory.result.rows; ++index) {
    const Row& row = memory.rows[index];
    CHECK(row.counted == expected.rows.at(row.range).nan);
    CHECK(row.nan == 0);  // nobody has asked for values
    nan += row.counted;
  }
  CHECK(nan > 100);
  CHECK(g_elements > nan);
  CHECK(g_greatest > 1e30);
}

TEST_CASE("values of every type are those of their bits") {
  const auto value = [](u64 bits, u32 element) {
    return device::value_of(device::bits_of(&bits, 0, element), element);
  };
  CHECK(value(0x40490fdb, device::kFloat32) == doctest::Approx(3.14159265));
  CHECK(value(0xbff8000000000000, device::kFloat64) == -1.5);
  CHECK(value(0x3f80, device::kBfloat16) == 1.0);
  CHECK(value(0x3c00, device::kFloat16) == 1.0);
  CHECK(value(0xc500, device::kFloat16) == -5.0);
  CHECK(value(0x7bff, device::kFloat16) == 65504.0);
  CHECK(value(0x0001, device::kFloat16) == std::ldexp(1.0, -24));
  CHECK(value(0x83ff, device::kFloat16) == -1023 * std::ldexp(1.0, -24));
  CHECK(value(0x0400, device::kFloat16) == std::ldexp(1.0, -14));
  CHECK(std::isnan(value(0x7e00, device::kFloat16)));
  CHECK(value(0xfc00, device::kFloat16) == -INFINITY);
}
