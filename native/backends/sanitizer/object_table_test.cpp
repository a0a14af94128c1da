#include "backends/sanitizer/object_table.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using leadline::sanitizer::Birth;
using leadline::sanitizer::ObjectTable;
using leadline::sanitizer::Range;

namespace {

std::string drawn(ObjectTable& table) {
  std::string text;
  std::uint64_t epoch = 0;
  table.copy(1000, &epoch, [&](std::size_t, const Range& range) {
    text += std::to_string(range.begin) + "-" + std::to_string(range.end) + ":" + std::to_string(range.object) + " ";
  });
  return text;
}

}  // namespace

TEST_CASE("Tensors hide the allocation that they lie in, and what is left is the allocation's") {
  ObjectTable table(16);
  table.allocated(1000, 1000, 0, 7, 0, false);
  CHECK(drawn(table) == "1000-2000:0 ");
  table.allocated(1100, 100, 0, 7, 0, true);
  table.allocated(1200, 100, 0, 7, 0, true);
  table.allocated(1900, 100, 0, 7, 0, true);
  CHECK(drawn(table) == "1000-1100:0 1100-1200:1 1200-1300:2 1300-1900:0 1900-2000:3 ");
  table.freed(1200, true);
  CHECK(drawn(table) == "1000-1100:0 1100-1200:1 1200-1900:0 1900-2000:3 ");
}

TEST_CASE("A tensor outside of every allocation is known too, and an address that comes again is a new object") {
  ObjectTable table(16);
  table.allocated(500, 100, 0, 0, 0, true);
  table.allocated(1000, 100, 0, 0, 0, false);
  CHECK(drawn(table) == "500-600:0 1000-1100:1 ");
  table.freed(500, true);
  table.allocated(500, 50, 0, 0, 0, true);
  CHECK(drawn(table) == "500-550:2 1000-1100:1 ");
}

TEST_CASE("What was freed without being told is gone where something else comes to lie there") {
  ObjectTable table(16);
  table.allocated(0x100, 0x100, 0, 0, 0, true);
  table.allocated(0x200, 0x100, 0, 0, 0, true);
  table.allocated(0x180, 0x100, 0, 0, 0, true);
  CHECK(drawn(table) == "384-640:2 ");
}

TEST_CASE("Every change is a new epoch, a copy is none") {
  ObjectTable table(16);
  const std::uint64_t before = table.epoch();
  table.allocated(100, 10, 0, 0, 0, false);
  const std::uint64_t after = table.epoch();
  CHECK(after != before);
  drawn(table);
  CHECK(table.epoch() == after);
  table.freed(100, false);
  CHECK(table.epoch() != after);
  table.freed(100, false);  // it is not there: nothing changes
  CHECK(table.epoch() == after + 1);
}

TEST_CASE("Objects without room are counted, and births are told once") {
  ObjectTable table(2);
  for (std::uint64_t i = 0; i < 5; ++i) table.allocated(1000 * (i + 1), 10, 3, 9, 4, true);
  CHECK(table.lost() == 3);
  std::vector<Birth> births(8);
  REQUIRE(table.births(births.data(), births.size()) == 2);
  CHECK(births[1].address == 2000);
  CHECK(births[1].object == 1);
  CHECK(births[1].device == 3);
  CHECK(births[1].place == 9);
  CHECK(births[1].launch == 4);
  CHECK(births[1].tensor == 1);
  CHECK(table.births(births.data(), births.size()) == 0);
}
