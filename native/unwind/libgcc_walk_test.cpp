// What libgcc finds between two places of the stack, against the return addresses that the functions saw themselves.
#include "unwind/libgcc_walk.h"

#include <doctest/doctest.h>

#include <array>
#include <cstdlib>
#include <vector>

#include "unwind/rule_cache.h"
#include "unwind/walk.h"

using namespace leadline::unwind;

namespace {

constexpr int kDepth = 40;

struct Level {
  uintptr_t local = 0;       // an address in its frame
  uintptr_t goes_on_at = 0;  // where its caller goes on
};

struct Found {
  std::vector<uintptr_t> between;
  bool whole = false;
};

struct Stack {
  std::array<Level, kDepth + 1> levels;  // by depth, the outermost first
  Found outermost_ten;                   // from the tenth function on outwards
  Found without_end;
  Found three;
};

Found found(uintptr_t above, uintptr_t stop, size_t room) {
  Found it;
  it.between.resize(room);
  it.between.resize(walk_between_by_libgcc(above, stop, it.between.data(), room, &it.whole));
  return it;
}

__attribute__((noinline)) void down(Stack& stack, int depth) {
  std::array<volatile char, 64> own{};
  Level& level = stack.levels.at(static_cast<size_t>(depth));
  level.local = reinterpret_cast<uintptr_t>(own.data());
  level.goes_on_at = reinterpret_cast<uintptr_t>(__builtin_extract_return_addr(__builtin_return_address(0)));
  if (depth == kDepth) {
    stack.outermost_ten = found(stack.levels[10].local, stack.levels[0].local, 1000);
    stack.without_end = found(stack.levels[10].local, UINTPTR_MAX, 1000);
    stack.three = found(stack.levels[10].local, stack.levels[0].local, 3);
  } else {
    down(stack, depth + 1);
  }
  own[0] = own[1];  // the call above is no jump
}

TEST_CASE("libgcc finds the calls between two places of the stack, as the functions saw them") {
  Stack stack;
  down(stack, 0);
  const std::vector<uintptr_t>& found = stack.outermost_ten.between;
  CHECK(stack.outermost_ten.whole);
  REQUIRE(found.size() == 10);  // depths 10 to 1; that of 0 ends beyond
  for (size_t i = 0; i < found.size(); ++i) CHECK(found[i] == stack.levels[11 - i].goes_on_at - 1);
  CHECK(stack.without_end.whole);  // to where the process began
  REQUIRE(stack.without_end.between.size() > 11);
  CHECK(std::vector(stack.without_end.between.begin(), stack.without_end.between.begin() + 10) == found);
  CHECK_FALSE(stack.three.whole);
  CHECK(stack.three.between == std::vector(found.begin(), found.begin() + 3));
}

TEST_CASE("native frames at operators are had on every processor") {
  REQUIRE(available());
  int here = 0;
  CHECK(stack_end(reinterpret_cast<uintptr_t>(&here), true) + stack_end(reinterpret_cast<uintptr_t>(&here), false) > 0);
}

}  // namespace
