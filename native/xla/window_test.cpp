#include "xla/window.h"

#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

#include "xla/plane_writer.h"
#include "xla/proto_writer.h"

using namespace leadline::xla;
using test::Message;
using test::Plane;

namespace {

struct Event {
  const char* name;
  uint64_t line;
  uint64_t start_ps;
  uint64_t duration_ps;
  uint64_t run;
  uint64_t device = 0;
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
    message.message(4, Message().number(1, 4).number(4, event.device));
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
  plane.message(5, named(4, "device_ordinal"));
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

TEST_CASE("a run that an edge of the window has cut on some device is left out") {
  const std::vector<Event> events{
      {"product", 1, 0, 10, 1, 0},  {"sum", 1, 10, 10, 1, 0},     {"product", 2, 0, 10, 1, 1},
      {"sum", 2, 10, 10, 1, 1},     {"product", 1, 30, 10, 2, 0}, {"maybe", 1, 40, 5, 2, 0},
      {"sum", 1, 50, 10, 2, 0},     {"product", 2, 30, 10, 2, 1}, {"sum", 2, 40, 10, 2, 1},
      {"product", 1, 60, 10, 3, 0}, {"product", 2, 60, 10, 3, 1}, {"sum", 2, 70, 10, 3, 1},
      {"product", 1, 90, 10, 4, 0}, {"sum", 1, 95, 10, 4, 0},
  };
  std::string problem;
  const std::string bytes = profile(events);
  const Space space(bytes, window_wanted(), &problem);
  const auto counts = [&](const WholeRuns& expected) {
    const Window window = sums(space, {}, expected);
    std::map<std::string, uint64_t> found;
    for (const OperationSum& sum : window.operations) found[std::string(space.strings()[sum.operation])] = sum.count;
    std::string whole;
    for (const ProgramRun& run : window.runs) whole += std::to_string(run.run) + (run.whole ? "+ " : "- ");
    return std::pair(found, whole);
  };
  using Counts = std::map<std::string, uint64_t>;
  const std::unordered_set<std::string_view> once{"product", "sum", "never seen"};
  CHECK(counts({}) ==
        std::pair(Counts{{"product", 7}, {"sum", 6}, {"maybe", 1}}, std::string("1+ 1+ 2+ 2+ 3+ 3+ 4+ ")));
  CHECK(counts({{5, {once, 0, 0}}}) ==
        std::pair(Counts{{"product", 4}, {"sum", 4}, {"maybe", 1}}, std::string("1+ 1+ 2+ 2+ 3- 3- 4- ")));
  // Earlier windows have seen more of it: none here is whole.
  CHECK(counts({{5, {once, 3, 2}}}).second == "1- 1- 2- 2- 3- 3- 4- ");
  CHECK(counts({{5, {once, 2, 3}}}).second == "1- 1- 2- 2- 3- 3- 4- ");
  CHECK(counts({{6, {once, 9, 9}}}).second == "1+ 1+ 2+ 2+ 3+ 3+ 4+ ");
}

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

namespace {

Window window_of(const std::string& bytes) {
  std::string problem;
  const Space space(bytes, window_wanted(), &problem);
  CHECK(problem.empty());
  return sums(space, {});
}

}  // namespace

TEST_CASE("work of a GPU counts on its streams only, not where it was launched and not on lines drawn from streams") {
  const std::vector<Plane::Stat> told{{"hlo_op", 0, "fusion.1"}, {"hlo_module", 0, "jit_f"}, {"program_id", 5}};
  std::vector<Plane::Stat> launch = told;
  launch.push_back({"correlation_id", 9});
  Plane device("/device:GPU:2");
  device.line("Stream #13(Compute)", {{"gemm", 100, 40, told}, {"splitK", 140, 10, told}, {"gemm", 200, 60, told}});
  device.line("XLA Ops", {{"fusion.1", 100, 50, told}});
  Plane host("/host:CPU");
  host.line("python", {{"cuLaunchKernel", 50, 5, launch}, {"Thunk", 40, 20, told}});
  const Window window = window_of(Message().message(1, host.message()).message(1, device.message()).text());
  REQUIRE(window.operations.size() == 2);
  for (const OperationSum& sum : window.operations) {
    CHECK(sum.device == 2);
    CHECK(sum.stream == 13);
    CHECK(sum.total_ps == (sum.count == 2 ? 100 : 10));
  }
  REQUIRE(window.runs.size() == 1);
  CHECK(window.runs[0].on_device);
  CHECK(window.runs[0].device == 2);
  CHECK(window.runs[0].run == kUnknown);
}

TEST_CASE("operations of a TPU are its events' names, of the program that ran meanwhile, and a loop is not its body") {
  const char* whole = "%fusion.1 = f32[8]{0:T(128)} fusion(%p), kind=kLoop";
  Plane device("/device:TPU:1");
  device.line("XLA Modules", {{"jit_f(18446744073709551611)", 0, 100, {{"run_id", 70}}},
                              {"jit_f(18446744073709551611)", 100, 100, {{"run_id", 71}}}});
  device.line("XLA Ops", {{"%while.2 = (s32[]) while(%t)", 0, 90, {}},
                          {whole, 10, 30, {}},
                          {whole, 50, 30, {}},
                          {"%while.2 = (s32[]) while(%t)", 100, 90, {}},
                          {whole, 110, 70, {}}});
  device.line("Steps", {{"0", 0, 100, {}}});
  device.of_name(whole, "fusion.1", {{"flops", 8}});
  std::string problem;
  const std::string bytes = Message().message(1, device.message()).text();
  const Space space(bytes, window_wanted(), &problem);
  const Window window = sums(space, {});
  REQUIRE(window.runs.size() == 2);
  CHECK(window.runs[0].program == -5);  // a number of 64 bits without a sign
  CHECK(window.runs[0].run == 70);
  CHECK(space.strings()[window.runs[0].module] == "jit_f");
  REQUIRE(window.operations.size() == 2);
  for (const OperationSum& sum : window.operations) {
    const bool loop = space.strings()[sum.operation] == "while.2";
    CHECK(space.strings()[sum.operation] == (loop ? "while.2" : "fusion.1"));
    CHECK(sum.count == (loop ? 2 : 3));
    CHECK(sum.total_ps == (loop ? 180 : 130));
    CHECK(sum.self_ps == (loop ? 50 : 130));
  }
}
