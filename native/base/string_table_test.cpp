#include "base/string_table.h"

#include <doctest/doctest.h>

#include <string>
#include <thread>

using namespace leadline;

TEST_CASE("Equal strings have one id, the empty string is 0") {
  StringTable table;
  CHECK(table.size() == 1);
  CHECK(table.intern("") == kEmptyString);
  const StringId a = table.intern("aten::add");
  const StringId b = table.intern("aten::mul");
  CHECK(a != b);
  CHECK(table.intern(std::string("aten::") + "add") == a);
  CHECK(table.text(a) == "aten::add");
  CHECK(table.text(a).data()[9] == '\0');
  CHECK(table.text(kEmptyString).empty());
  CHECK(table.size() == 3);
}

TEST_CASE("Strings of every length up to 100 that differ in one byte stay apart") {
  StringTable table;
  std::uint32_t expected = 1;
  for (std::size_t size = 1; size <= 100; ++size) {
    for (std::size_t at = 0; at < size; ++at) {
      std::string text(size, '.');
      text[at] = '#';
      const StringId id = table.intern(text);
      CHECK(raw(id) == expected);
      CHECK(table.text(id) == text);
      ++expected;
    }
  }
  CHECK(table.size() == expected);
}

TEST_CASE("A string with a NUL inside is kept whole") {
  StringTable table;
  const std::string text("a\0b", 3);
  CHECK(table.text(table.intern(text)) == text);
  CHECK(table.intern("a") != table.intern(text));
}

TEST_CASE("A very long string is cut between characters, and its twin finds it") {
  StringTable table;
  const std::string text = std::string(StringTable::kMaxBytes - 1, 'x') + "\xC3\xA9";
  const StringId id = table.intern(text);
  CHECK(table.text(id).size() == StringTable::kMaxBytes - 1);
  CHECK(table.intern(text) == id);
}

TEST_CASE("A full table refuses new strings and still knows the old ones") {
  StringTable table(3);
  const StringId a = table.intern("a");
  table.intern("b");
  bool refused = false;
  CHECK(table.intern("c", &refused) == kEmptyString);
  CHECK(refused);
  refused = false;
  CHECK(table.intern("a", &refused) == a);
  CHECK_FALSE(refused);
}

TEST_CASE("A thread may read while another interns") {
  StringTable table;
  constexpr std::uint32_t kStrings = 50'000;
  std::atomic<int> wrong{0};
  std::thread reader([&] {
    for (std::uint32_t size = 0; size <= kStrings;) {
      size = table.size();
      const std::uint32_t last = size - 1;
      if (last > 0 && table.text(StringId{last}) != "string " + std::to_string(last)) wrong.fetch_add(1);
    }
  });
  for (std::uint32_t i = 1; i <= kStrings; ++i) table.intern("string " + std::to_string(i));
  reader.join();
  CHECK(wrong == 0);
  CHECK(table.held_bytes() > kStrings * 10);
}
