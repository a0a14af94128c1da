#include "xla/space.h"

#include <doctest/doctest.h>

#include <string>

#include "xla/proto_writer.h"
#include "xla/window.h"

using namespace leadline::xla;
using test::Message;

namespace {

Message named(uint32_t field_of_name, uint64_t key, std::string_view name) {
  return Message().number(1, key).message(2, Message().number(1, key).bytes(field_of_name, name));
}

std::string profile() {
  Message plane;
  plane.number(1, 3).bytes(2, "/host:CPU");
  const Message event = Message()
                            .number(1, 7)
                            .number(2, 5'000)
                            .number(3, 2'000)
                            .message(4, Message().number(1, 1).number(7, 4))
                            .message(4, Message().number(1, 2).number(3, 77))
                            .message(4, Message().number(1, 3).bytes(5, "not asked for"));
  plane.message(3, Message().number(1, 42).bytes(2, "worker").number(3, 1'000).message(4, event));
  plane.message(3, Message().number(1, 43).bytes(11, "shown").number(3, 1'001).message(4, event));
  plane.message(4, named(2, 7, "dot.1"));
  plane.message(5, named(2, 1, "hlo_op")).message(5, named(2, 2, "program_id"));
  plane.message(5, named(2, 3, "other")).message(5, named(2, 4, "dot.1"));
  plane.message(6, Message().number(1, 3).number(4, 5));
  const Message program = Message()
                              .number(1, 77)
                              .bytes(2, "jit_step(77)")
                              .message(5, Message().number(1, 1).bytes(6, Message().bytes(1, "the module").text()));
  Message programs;
  programs.bytes(2, "/host:metadata").message(4, Message().number(1, 77).message(2, program));
  programs.message(5, named(2, 1, "Hlo Proto"));
  return Message().message(1, plane).message(1, programs).text();
}

}  // namespace

TEST_CASE("a profile is read as planes, lines and events with the statistics that were asked for") {
  std::string problem;
  const std::string bytes = profile();
  const Space space(bytes, window_wanted(), &problem);
  CHECK(problem.empty());
  REQUIRE(space.planes().size() == 2);
  CHECK(space.planes()[0].name == "/host:CPU");
  CHECK(space.planes()[0].stats[0].second == "5");
  REQUIRE(space.lines().size() == 2);
  CHECK(space.lines()[1].name == "shown");
  CHECK(space.base_ns() == 1'000);
  REQUIRE(space.events().size() == 2);
  CHECK(space.events().start_ps[0] == 5'000);
  CHECK(space.events().start_ps[1] == 6'000);
  CHECK(space.events().duration_ps[1] == 2'000);
  CHECK(space.events().number(0, 0) == 77);
  CHECK(space.events().number(1, 0) == kUnknown);
  CHECK(space.strings()[space.events().text(0, 0)] == "dot.1");
  REQUIRE(space.programs().size() == 1);
  CHECK(space.programs()[0].id == 77);
  CHECK(space.programs()[0].module == "the module");
}

TEST_CASE("a profile that is cut off or changed is said to be damaged, and never read beyond") {
  const std::string whole = profile();
  for (size_t length = 0; length < whole.size(); ++length) {
    std::string problem;
    const Space space(std::string_view(whole).substr(0, length), window_wanted(), &problem);
    sums(space, {});
  }
  test::Damage damage;
  for (int round = 0; round < 20'000; ++round) {
    const std::string changed = damage.of(whole);
    std::string problem;
    const Space space(changed, window_wanted(), &problem);
    sums(space, {});
  }
}
