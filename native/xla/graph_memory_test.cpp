#include "xla/graph_memory.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "xla/plane_writer.h"
#include "xla/proto_writer.h"

using namespace leadline::xla;
using test::Damage;
using test::Message;
using test::Plane;

namespace {

Plane::Event change(const char* what, uint64_t at_ps, int64_t asked, int64_t given, int64_t in_use, int64_t peak) {
  return {what,
          at_ps,
          0,
          {{"allocator_name", 0, "cpu_bfc"},
           {"requested_bytes", asked},
           {"allocation_bytes", given},
           {"bytes_allocated", in_use},
           {"bytes_reserved", 4096},
           {"bytes_available", 4096 - in_use},
           {"peak_bytes_in_use", peak}}};
}

std::vector<Allocator> read(const std::string& bytes, size_t most = 1000) {
  std::string problem;
  Wanted wanted;
  want_memory(&wanted);
  const Space space(bytes, wanted, &problem);
  return allocators(space, most);
}

constexpr const char* kTakes = "MemoryAllocation";
constexpr const char* kFrees = "MemoryDeallocation";

}  // namespace

TEST_CASE("what an allocator was asked for, what it gave and what it held are told in the order of time") {
  Plane plane("/host:CPU");
  plane.line("one", {change(kTakes, 10, 100, 256, 256, 256), change(kFrees, 30, 100, 256, 512, 768)});
  plane.line("two", {change(kTakes, 20, 500, 512, 768, 768), {kTakes, 25, 0, {{"requested_bytes", 9}}}});
  const auto found = read(Message().message(1, plane.message()).text());
  REQUIRE(found.size() == 1);
  const Allocator& one = found[0];
  CHECK(one.allocations == 2);
  CHECK(one.frees == 1);
  CHECK(one.requested_bytes == 600);
  CHECK(one.given_bytes == 768);
  CHECK(one.peak_bytes == 768);
  CHECK(one.reserved_bytes == 4096);
  REQUIRE(one.moments.size() == 3);
  CHECK(one.moments[1].at_ps == 20);
  CHECK(one.moments[1].blocks == 2);
  CHECK(one.moments[1].wasted == 168);
  CHECK(one.moments[2].in_use == 512);
  CHECK(one.moments[2].wasted == 12);
  CHECK(one.moments[2].available == 4096 - 512);
}

TEST_CASE("long histories keep the highest and the last moment of every stretch, and damage ends with numbers") {
  Plane plane("/host:CPU");
  std::vector<Plane::Event> changes;
  for (uint64_t at = 0; at < 1000; ++at)
    changes.push_back(change(kTakes, at, 1, 1, at == 777 ? 4000 : static_cast<int64_t>(at % 7), 4000));
  plane.line("one", changes);
  const std::string bytes = Message().message(1, plane.message()).text();
  const auto found = read(bytes, 50);
  REQUIRE(found.size() == 1);
  CHECK(found[0].allocations == 1000);
  CHECK(found[0].moments.size() <= 50);
  CHECK(found[0].moments.back().at_ps == 999);
  bool has_peak = false;
  for (const Allocator::Moment& moment : found[0].moments) has_peak = has_peak || moment.in_use == 4000;
  CHECK(has_peak);
  Damage damage;
  for (int i = 0; i < 200; ++i) {
    for (const Allocator& one : read(damage.of(bytes), 50)) CHECK(one.moments.size() <= 50);
  }
}
