// Pickles written byte by byte: what is shared, what becomes columns, and that no damage reads what is not there.
// Against Python's own reader: tests/trace/test_snapshot_file.py.
#include "offline/snapshot.h"

#include <doctest/doctest.h>

#include <random>
#include <string>

using namespace leadline::offline;

namespace {

std::string text(const std::string& value) { return "\x8c" + std::string(1, static_cast<char>(value.size())) + value; }

// [{"action": "alloc", "addr": 7, "size": 5, "time_us": 9, "frames": [{"line": 3}]}, ...] with a fresh stack for each.
std::string actions(int count) {
  std::string made = "\x80\x04](";
  for (int i = 0; i < count; ++i) {
    made += "}(" + text("action") + text("alloc") + text("addr") + "K\x07" + text("size") + "K\x05" + text("time_us") +
            "K\x09" + text("frames") + "]}" + text("line") + "K\x03" + "sau";
  }
  return made + "e.";
}

Plain read(SnapshotReader& reader, const std::string& file, size_t piece) {
  size_t at = 0;
  return reader.read([&]() -> std::string_view {
    const size_t from = std::min(at, file.size());
    at = from + piece;
    return std::string_view(file).substr(from, piece);
  });
}

}  // namespace

TEST_CASE("actions are columns and equal stacks are one") {
  for (const size_t piece : {1, 5, 1000}) {
    SnapshotReader reader;
    const Plain root = read(reader, actions(40), piece);
    const auto& rows = reader.actions();
    REQUIRE(rows.action.size() == 40);
    CHECK(reader.text(static_cast<uint64_t>(rows.action[39])) == "alloc");
    CHECK(rows.address[39] == 7);
    CHECK(rows.size[39] == 5);
    CHECK(rows.time_us[39] == 9);
    CHECK(rows.stack[0] == rows.stack[39]);
    const auto& items = reader.items(reader.content(root));
    REQUIRE(items.size() == 40);
    CHECK(reader.is_action(items[39]));
    CHECK(reader.action(items[39]) == 39);
  }
}

TEST_CASE("a class is named") {
  SnapshotReader reader;
  CHECK_THROWS_WITH_AS(read(reader,
                            "\x80\x02"
                            "cposix\nsystem\n.",
                            3),
                       "posix.system", ObjectInPickle);
}

TEST_CASE("damage is an error or other data") {
  const std::string whole = actions(8);
  std::mt19937 draw(3);
  for (int round = 0; round < 20'000; ++round) {
    std::string torn = whole.substr(0, draw() % 3 == 0 ? draw() % whole.size() : whole.size());
    for (unsigned i = draw() % 4; i > 0 && !torn.empty(); --i) torn[draw() % torn.size()] = static_cast<char>(draw());
    SnapshotReader reader;
    try {
      read(reader, torn, 64);
    } catch (const DamagedPickle&) {
      continue;
    } catch (const ObjectInPickle&) {
      continue;
    }
  }
}
