#include "xla/window.h"

#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

#include "xla/proto_writer.h"

using namespace leadline::xla;
using test::Message;

namespace {

struct Event {
  const char* name;
  uint64_t line;
  uint64_t start_ps;
  uint64_t duration_ps;
  uint64_t run;
};

// One plane; every event is an operation of program 5.
std::string profile(const std::vector<Event>& events) {
  std::map<std::string, uint64_t> names;
  for (const Event& event : events) names.emplace(event.name, 10 + names.size());
  std::map<uint64_t, Message> lines;
  for (const Event& event : events) {
    Message message;
    message.number(1, names[event.name]).number(2, event.start_ps).number(3, event.duration_ps);
    message.message(4, Message().number(1, 1).number(7, names[event.name]));
    message.message(4, Message().number(1, 2).number(4, 5));
    message.message(4, Message().number(1, 3).number(4, event.run));
    lines[event.line].message(4, message);
  }
  Message plane;
  const auto named = [](uint64_t key, std::string_view name) {
    return Message().number(1, key).message(2, Message().number(1, key).bytes(2, name));
  };
  for (const auto& [line, message] : lines) {
    Message whole = message;
    plane.message(3, whole.number(1, line));
  }
  for (const auto& [name, key] : names) plane.message(4, named(key, name)).message(5, named(key, name));
  plane.message(5, named(1, "hlo_op")).message(5, named(2, "program_id")).message(5, named(3, "run_id"));
  return Message().message(1, plane).text();
}

std::map<std::string, OperationSum> by_name(const std::string& bytes, const ControlFlow& control, size_t* runs) {
  std::string problem;
  const Space space(bytes, window_wanted(), &problem);
  CHECK(problem.empty());
  const Window window = sums(space, control);
  *runs = window.runs.size();
  std::map<std::string, OperationSum> found;
  for (const OperationSum& sum : window.operations) found.emplace(space.strings()[sum.operation], sum);
  return found;
}

}  // namespace

TEST_CASE("what ran inside an operation on the same thread is not its own time") {
  size_t runs = 0;
  const auto sums = by_name(profile({{"outer", 1, 0, 100, 1},
                                     {"inner", 1, 10, 30, 1},
                                     {"inner", 1, 50, 20, 1},
                                     {"end: inner", 1, 70, 1, 1},
                                     {"outer", 1, 200, 100, 2}}),
                            {}, &runs);
  CHECK(runs == 2);
  CHECK(sums.size() == 2);
  CHECK(sums.at("outer").count == 2);
  CHECK(sums.at("outer").total_ps == 200);
  CHECK(sums.at("outer").self_ps == 150);
  CHECK(sums.at("inner").count == 2);
  CHECK(sums.at("inner").min_ps == 20);
  CHECK(sums.at("inner").max_ps == 30);
}

TEST_CASE("of an operation that runs others on other threads only what none of them covers is its own") {
  size_t runs = 0;
  const std::string bytes = profile(
      {{"while", 1, 0, 100, 1}, {"a", 2, 10, 40, 1}, {"b", 3, 30, 40, 1}, {"a", 4, 30, 40, 2}, {"c", 2, 90, 20, 1}});
  const ControlFlow control{{5, {"while"}}};
  const auto sums = by_name(bytes, control, &runs);
  CHECK(runs == 2);
  CHECK(sums.at("while").self_ps == 40);  // 10..70 is covered; c ends later and is no part of it
  CHECK(sums.at("a").self_ps == 80);
  CHECK(by_name(bytes, {}, &runs).at("while").self_ps == 100);
}
