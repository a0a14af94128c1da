// Walks at operators that are remembered, against libgcc's unwinder: programs drawn at random come to the same
// operator, with the same stack pointer, by many ways.
#include "providers/cpu/operator_frames.h"

#include <doctest/doctest.h>
#include <unwind.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <random>
#include <thread>
#include <utility>
#include <vector>

using namespace leadline;

namespace {

#ifdef __x86_64__
#define LEADLINE_ALIGNS __attribute__((noinline, force_align_arg_pointer))
constexpr bool kRemembered = true;
#else  // libgcc does not say what a walk rests on
#define LEADLINE_ALIGNS __attribute__((noinline))
constexpr bool kRemembered = false;
#endif
constexpr size_t kRoom = 256;
constexpr uintptr_t kBelow = 48 * 1024;  // where operators begin, below what calls them all

struct Frame {
  uintptr_t pc;
  uintptr_t sp;
};

_Unwind_Reason_Code note(_Unwind_Context* context, void* to) {
  static_cast<std::vector<Frame>*>(to)->push_back({_Unwind_GetIP(context), _Unwind_GetCFA(context)});
  return _URC_NO_REASON;
}

// One thread's run: walks as the collector remembers them, and what came of them.
struct Run {
  const NativeSource* source = cpu::operator_frames(true, 0);
  std::map<std::pair<uintptr_t, uintptr_t>, NativeWalks> known;
  std::deque<std::vector<uintptr_t>> results;
  std::vector<Frame> reference;
  std::mt19937 way;  // drawn anew for each call from `ways`
  uintptr_t landing = 0;
  uintptr_t stop = 0;
  int walked = 0;
  int as_before = 0;
  int wrong = 0;
  int nested = 0;
};

// What libgcc says of the frames that end beyond `above` and not beyond `stop`.
std::vector<uintptr_t> expected(Run& run, uintptr_t above, uintptr_t stop) {
  run.reference.clear();
  _Unwind_Backtrace(note, &run.reference);
  std::vector<uintptr_t> calls;
  for (size_t i = 0; i + 1 < run.reference.size(); ++i) {
    const uintptr_t end = run.reference[i + 1].sp;  // where the caller begins
    if (end > above && end <= stop) calls.push_back(run.reference[i].pc - 1);
  }
  return calls;
}

__attribute__((noinline)) void begin_operator(Run& run, uintptr_t above, uintptr_t stop) {
  std::array<uintptr_t, kRoom> calls;
  bool whole = false;
  NativeWalks& known = run.known[{above, stop}];
  const size_t count = run.source->walk_again(above, stop, calls.data(), kRoom, &whole, &known);
  void*& found = known.walks[known.latest].found;
  if (count == NativeSource::kAsBefore) {
    ++run.as_before;
  } else {
    found = &run.results.emplace_back(calls.begin(), calls.begin() + static_cast<std::ptrdiff_t>(count));
    run.wrong += whole ? 0 : 1;
  }
  ++run.walked;
  run.wrong += *static_cast<const std::vector<uintptr_t>*>(found) == expected(run, above, stop) ? 0 : 1;
}

void down(Run& run, int depth);

// Who calls an operator: its token lies on that frame. Some operators call others.
__attribute__((noinline)) void calls_operator(Run& run) {
  const auto token = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  begin_operator(run, token, run.stop);
  if (run.nested++ == 0 && run.way() % 3 == 0) {
    const uintptr_t landing = std::exchange(run.landing, token - kBelow / 2);
    const uintptr_t stop = std::exchange(run.stop, token);
    down(run, static_cast<int>(run.way() % 6));
    run.stop = stop;
    run.landing = landing;
  }
  --run.nested;
  asm volatile("");
}
__attribute__((noinline)) void calls_it_too(Run& run) {
  calls_operator(run);
  asm volatile("");
}

// Leaves what earlier calls wrote there as it is: return addresses among it.
__attribute__((noinline)) void land(Run& run) {
  const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  auto* const between = static_cast<volatile char*>(__builtin_alloca((here - run.landing) / 32 * 32));
  asm volatile("" : : "r"(between));
  if (run.way() % 2 == 0) {
    calls_operator(run);
  } else {
    calls_it_too(run);
  }
  asm volatile("");
}

__attribute__((noinline)) void plainly(Run& run, int depth) {
  down(run, depth - 1);
  asm volatile("");
}
__attribute__((noinline)) void with_room(Run& run, int depth) {
  auto* const some = static_cast<volatile char*>(__builtin_alloca(static_cast<size_t>(16 + depth * 24)));
  some[0] = 1;
  down(run, depth - 1);
  some[1] = 2;
}
LEADLINE_ALIGNS void aligned(Run& run, int depth) {
  alignas(64) [[maybe_unused]] volatile char buffer[128];
  buffer[0] = 1;
  down(run, depth - 1);
  buffer[1] = 2;
}
__attribute__((noinline)) void with_registers(Run& run, int depth) {
  uint64_t a = run.way(), b = run.way(), c = run.way(), d = run.way(), e = run.way(), f = run.way();
  down(run, depth - 1);
  asm volatile("" : : "r"(a), "r"(b), "r"(c), "r"(d), "r"(e), "r"(f));
}
__attribute__((noinline)) void through_function(Run& run, int depth) {
  const std::function<void()> call = [&run, depth] { down(run, depth - 1); };
  call();
}

__attribute__((noinline)) void down(Run& run, int depth) {
  if (depth <= 0) return land(run);
  switch (run.way() % 6) {
    case 0:
      return with_room(run, depth);
    case 1:
      return aligned(run, depth);
    case 2:
      return with_registers(run, depth);
    case 3:
      return through_function(run, depth);
    case 4:
      plainly(run, depth);  // the same function from two of its lines
      break;
    default:
      plainly(run, depth);
      asm volatile("");
  }
  asm volatile("");
}

// `ways`: how many there are, of which each round takes one.
__attribute__((noinline)) void calls_all(Run& run, int rounds, uint32_t ways) {
  const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  std::mt19937 random(11);
  for (int round = 0; round < rounds; ++round) {
    const uint32_t way = random() % ways;
    run.way.seed(way);
    run.landing = here - kBelow;
    run.stop = here;
    down(run, static_cast<int>(way % 12));
  }
}

}  // namespace

TEST_CASE("What is remembered of walks is what libgcc finds, whichever way the program came") {
  for (const uint32_t ways : {1u, 3u, 7u, 40u, 5000u}) {
    Run run;
    REQUIRE(run.source != nullptr);
    calls_all(run, 3000, ways);
    CAPTURE(ways);
    CHECK(run.wrong == 0);
    CHECK(run.walked >= 3000);
    if (kRemembered && ways <= 3) CHECK(run.as_before > run.walked * 9 / 10);
    if (kRemembered && ways == 40) CHECK(run.as_before > 100);
  }
}

TEST_CASE("The same on a thread, to the end of its stack") {
  std::thread([] {
    Run run;
    calls_all(run, 1000, 5);
    CHECK(run.wrong == 0);
    if (kRemembered) CHECK(run.as_before > 500);
  }).join();
}

namespace {

// Ways that differ in nothing but the function: frames of one size, words of the other left where they were.
using Next = void (*)(Run&);
__attribute__((noinline)) void one(Run& run) {
  land(run);
  asm volatile("nop");
}
__attribute__((noinline)) void other(Run& run) {
  land(run);
  asm volatile("nop; nop");
}

}  // namespace

TEST_CASE("A way that differs in one return address is another one") {
  Run run;
  const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  run.stop = here;
  for (int round = 0; round < 400; ++round) {
    run.way.seed(2);
    run.landing = here - kBelow;
    const Next next = round % 3 == 0 ? one : other;
    next(run);
  }
  CHECK(run.wrong == 0);
  CHECK(run.as_before == run.walked - static_cast<int>(run.results.size()));
  if (kRemembered) CHECK(run.results.size() <= 8);
}
