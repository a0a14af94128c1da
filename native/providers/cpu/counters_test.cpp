#include "providers/cpu/counters.h"

#include <doctest/doctest.h>
#include <unistd.h>

using namespace leadline;
using namespace leadline::cpu;

TEST_CASE("every name of a counter is found, and belongs to one metric") {
  for (const CounterKind& kind : kCounterKinds) {
    CHECK(find_counter(kind.name) == &kind);
    if (!kind.other_name.empty()) CHECK(find_counter(kind.other_name) == &kind);
    for (const CounterKind& other : kCounterKinds) CHECK((&other == &kind || other.metric != kind.metric));
  }
  CHECK(find_counter("") == nullptr);
  CHECK(find_counter("cpu-cycle") == nullptr);
}

TEST_CASE("usage is counted from one reading to the next, and never backwards") {
  CounterPlan plan;
  REQUIRE(plan.make({"page-faults", "faults", "major-faults", "context-switches"}).empty());
  REQUIRE(plan.counters().size() == 3);  // two names of one counter
  REQUIRE(plan.words() == kUsageWords);
  CounterBooks books;
  books.begin({10, 1, 5});
  int64_t counts[3] = {};
  const uint64_t first[] = {14, 3, 5};
  books.take(plan, first, counts);
  CHECK(counts[0] == 6);
  CHECK(counts[1] == 2);
  CHECK(counts[2] == 0);
  const uint64_t unread[] = {0, 0, 0};
  books.take(plan, unread, counts);
  const uint64_t last[] = {15, 3, 9};
  books.take(plan, last, counts);
  CHECK(counts[0] == 7);
  CHECK(counts[1] == 2);
  CHECK(counts[2] == 4);
  CHECK(!books.scaled());
}

TEST_CASE("the usage of this thread is the same from inside and from outside") {
  Usage outside;
  REQUIRE(usage_of(static_cast<pid_t>(gettid()), &outside));
  const Usage inside = own_usage();
  CHECK(outside.minor_faults <= inside.minor_faults);
  CHECK(inside.minor_faults - outside.minor_faults < 64);
  CHECK(outside.switches <= inside.switches);
  CHECK(!usage_of(-1, &outside));
}

TEST_CASE("names that nothing counts by are refused with a sentence each") {
  CounterPlan plan;
  const std::vector<std::string> refused = plan.make({"no-such-thing", "page-faults", ""});
  REQUIRE(refused.size() == 2);
  CHECK(refused[0].find("no counter named no-such-thing; there are page-faults, ") != std::string::npos);
  CHECK(plan.counters().size() == 1);
}
