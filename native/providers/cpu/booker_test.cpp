#include "providers/cpu/booker.h"

#include <doctest/doctest.h>

#include <array>
#include <bit>
#include <memory>

#include "providers/cpu/handler.h"

using namespace leadline;
using namespace leadline::cpu;

namespace {

int64_t g_waiting = -1;

bool ask_is_code(uintptr_t) {
  g_waiting = waiting_samples().load();
  return false;
}

}  // namespace

TEST_CASE("A sample waits until it is booked, so that its code objects live while they are looked at") {
  PythonSamples python{};
  const PythonSource source{};
  python.is_code = ask_is_code;
  python.source = &source;
  Booker booker;
  booker.set_python(&python);
  const auto thread = std::make_unique<SampledThread>();
  SampleHead head{};
  head.frames = 1;
  const auto words = std::bit_cast<std::array<uint64_t, kHeadWords>>(head);
  REQUIRE(thread->ring.begin(1 + kHeadWords + 3));
  for (const uint64_t word : words) thread->ring.put(word);
  for (const uint64_t word : {0x1000, 0x2000, 0x3000}) thread->ring.put(static_cast<uint64_t>(word));
  waiting_samples().fetch_add(1);
  thread->ring.end();
  booker.book(*thread);
  CHECK(g_waiting == 1);
  CHECK(waiting_samples().load() == 0);
}
