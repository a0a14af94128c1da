// Events that come in pieces, damage, and numbers at their limits. Equality with Python's json on shared and made
// traces is proved in tests/trace/test_compiled_reader.py.
#include "offline/events.h"

#include <doctest/doctest.h>

#include <random>
#include <string>

#include "offline/json.h"

using namespace leadline::offline;

namespace {

std::string event(const std::string& name, const std::string& more = "") {
  return R"({"ph":"X","cat":"cpu_op","name":")" + name + R"(","ts":1.5,"dur":2,"pid":7,"tid":"thread 9")" + more + "}";
}

std::string name_of(const EventReader& reader, size_t row) {
  return std::string(reader.names.text(static_cast<size_t>(reader.events.name[row])));
}

}  // namespace

TEST_CASE("events are the same however the text is cut") {
  const std::string text = event("a", R"(,"args":{"Sequence number":4,"Input Dims":[[2,"]},{"]]})") + ",\n" +
                           event(R"(b\u00e9\ud83d\ude00)") + "]}tail";
  for (size_t piece = 1; piece <= text.size(); ++piece) {
    EventReader reader({});
    bool ended = false;
    size_t at = 0;
    for (; at < text.size() && !ended; at += piece)
      ended = reader.feed(std::string_view(text).substr(at, piece), false);
    CHECK(ended);
    REQUIRE(reader.events.ts.size() == 2);
    CHECK(name_of(reader, 0) == "a");
    CHECK(name_of(reader, 1) == "b\xC3\xA9\xF0\x9F\x98\x80");
    CHECK(reader.events.sequence[0] == 4);
    CHECK(reader.threads.tid.size() == 1);
    CHECK(reader.details.text(0) == R"("Input Dims":[[2,"]},{"]])");
    CHECK_FALSE(reader.damaged);
    CHECK(std::string_view("}tail").substr(0, reader.rest().size()) == reader.rest());
  }
}

TEST_CASE("equal details are kept once") {
  EventReader reader({});
  const std::string more = R"(,"args":{"External id":1,"Input dims":[[1]]})";
  CHECK(
      reader.feed(event("a", more) + "," + event("b", R"(,"args":{"External id":2,"Input Dims":[[1]]})") + "]", true));
  CHECK(reader.details.size() == 1);
}

TEST_CASE("a window and marks keep only what was asked for") {
  EventReader window({4.0, 9.0, false});
  CHECK(
      window.feed(event("early") + R"(,{"ph":"X","cat":"cpu_op","name":"in","ts":3,"dur":1,"pid":1,"tid":1}])", true));
  REQUIRE(window.events.ts.size() == 1);
  CHECK(name_of(window, 0) == "in");
  EventReader marks({0.0, 1e9, true});
  CHECK(marks.feed(event("ProfilerStep#1") + "," + event("aten::mm") + "]", true));
  CHECK(marks.events.ts.size() == 1);
}

TEST_CASE("numbers at their limits") {
  const auto number = [](std::string_view raw) { return number_of({JsonType::number, raw}); };
  CHECK(number("9007199254740993")->whole == 9007199254740993);
  CHECK(number("1e3")->whole == 1000);
  CHECK_FALSE(number("18446744073709551615")->whole.has_value());
  CHECK(number("18446744073709551615")->bits == ~uint64_t{0});
  CHECK(number("-1")->bits == ~uint64_t{0});
  CHECK_FALSE(number("18446744073709551616")->bits.has_value());
  CHECK(number("1e999")->real == std::numeric_limits<double>::infinity());
  CHECK(number("1e-999")->real == 0.0);
  CHECK_FALSE(number_of({JsonType::text, "soon"}).has_value());
  CHECK_FALSE(number_of({JsonType::constant, "true"}).has_value());
}

// For the sanitizers: no text may be read outside its bounds or end in a loop.
TEST_CASE("random changes of a trace are survived") {
  std::mt19937 chance(7);
  const std::string good = event("a", R"(,"args":{"x":[1,{"y":"\u00e9"}],"Input Dims":[[1,2],[]],"grid":[1,1]})") +
                           "," + R"({"ph":"s","cat":"fwdbwd","id":"0x1","pid":1,"tid":1,"ts":5},)" +
                           R"({"ph":"M","name":"thread_name","pid":1,"tid":1,"args":{"name":"main"}},)" + event("b") +
                           "]}";
  const std::string letters = "{}[]\",:\\u0-9.eNtfn \n";
  for (int round = 0; round < 20000; ++round) {
    std::string text = good;
    for (int change = 0; change < 1 + round % 4; ++change) {
      const size_t at = chance() % text.size();
      if (chance() % 2 != 0)
        text[at] = letters[chance() % letters.size()];
      else
        text.erase(at, 1 + chance() % 20);
      if (text.empty()) text = "]";
    }
    EventReader reader({});
    const size_t cut = chance() % text.size();
    if (!reader.feed(std::string_view(text).substr(0, cut), false))
      reader.feed(std::string_view(text).substr(cut), true);
    CHECK(reader.events.ts.size() <= 4);
  }
}

TEST_CASE("behind damage nothing counts before the next event, however the text is cut") {
  const std::string text = event("a") + R"(,{"ph":"X","name":"b" "c],{},"d":1},)" + event("e") + "]";
  for (size_t piece = 1; piece <= text.size(); ++piece) {
    EventReader reader({});
    bool ended = false;
    for (size_t at = 0; at < text.size() && !ended; at += piece) {
      ended = reader.feed(std::string_view(text).substr(at, piece), false);
    }
    CHECK(ended);
    CHECK(reader.damaged);
    REQUIRE(reader.events.ts.size() == 2);
    CHECK(name_of(reader, 1) == "e");
  }
}
