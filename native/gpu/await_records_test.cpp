// Waiting for records ends when they are there, when none can come, and when nothing moves any more.
#include "gpu/await_records.h"

#include <doctest/doctest.h>

namespace leadline::gpu {
namespace {

constexpr double kLong = 3600;  // a test that waits so long fails by its time limit

Launch launch() { return {1, 0, LaunchLog::kNone, LEADLINE_GPU_LAUNCH, 0, false}; }

}  // namespace

TEST_CASE("records that come one by one are all waited for, by both ways of waiting") {
  for (const bool while_moving : {false, true}) {
    CorrelationMap map;
    for (std::uint32_t id = 1; id <= 5; ++id) map.put(id, launch(), true);
    std::uint32_t next = 1;
    const auto fetch = [&] { return static_cast<bool>(map.get(next++)); };
    CHECK((while_moving ? await_work(map, kLong, fetch) : await_records(map, kLong, fetch)));
    CHECK(next == 6);
    CHECK(map.outstanding() == 0);
  }
}

TEST_CASE("nothing is waited for where nothing was launched, but what is there is fetched") {
  const CorrelationMap map;
  int fetched = 0;
  CHECK(await_records(map, 0, [&] { return ++fetched > 0; }));
  CHECK(fetched == 1);
  CHECK(await_work(map, 0, [&] { return ++fetched > 0; }));
  CHECK(fetched == 1);
}

TEST_CASE("who can get no more records does not wait for them") {
  CorrelationMap map;
  map.put(1, launch(), true);
  int fetched = 0;
  CHECK_FALSE(await_records(map, kLong, [&] { return ++fetched == 0; }));
  CHECK(fetched == 1);
  CHECK_FALSE(await_work(map, kLong, [&] { return ++fetched == 0; }));
  CHECK(fetched == 2);
}

TEST_CASE("work that never ends is given up, and what came until then counts") {
  CorrelationMap map;
  map.put(1, launch(), true);
  map.put(2, launch(), true);
  CHECK_FALSE(await_work(map, kLong, [&] { return map.get(2).has_value() || true; }));
  CHECK(map.outstanding() == 1);
}

}  // namespace leadline::gpu
