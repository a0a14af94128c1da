// Waiting at barriers: threads of a launch are kept at real barriers of the stand-in, in orders drawn from seeds, and
// what the text tells is compared with the clocks that it was given.
#include <doctest/doctest.h>

#include "testing/simt/simt.h"
// clang-format off
#include "backends/device/patches.cu"
// clang-format on

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

using namespace leadline;
using device::u32;
using device::u64;

namespace {

constexpr u32 kUnaligned = 1;
constexpr u32 kSync = 2;

struct Told {
  u64 meetings = 0;
  u64 waited = 0;
};

// Memory of one launch, and the clock's readings by block and by the barrier that the reading lane is at.
struct Launch {
  device::Tracker tracker{};
  device::Result result{};
  std::vector<device::Instruction> instructions = std::vector<device::Instruction>(64);
  std::vector<device::Instruction> told = std::vector<device::Instruction>(64);
  std::vector<device::Block> blocks;
  std::map<std::pair<u64, u64>, std::pair<u64, u64>> clocks;  // least and greatest
  u64 readings = 0;
  std::vector<u64> at;  // of each thread of the grid: the barrier it is at

  explicit Launch(size_t room) : blocks(room) {}

  // `thread` is called for each with its block and its number in it.
  template <typename Thread>
  void run(unsigned grid, unsigned block, u64 seed, const Thread& thread) {
    device::Setup& setup = tracker.setup;
    setup.version = device::kVersion;
    setup.want = device::kWantInstructions | device::kWantBarriers;
    setup.launch = seed;
    setup.threads_expected = u64{grid} * block;
    setup.instructions = instructions.data();
    setup.instruction_room = 64;
    setup.result_instruction_room = 64;
    setup.result_instructions = told.data();
    setup.result = &result;
    setup.blocks = blocks.data();
    setup.block_room = blocks.size();
    at.assign(size_t{grid} * block, 0);
    const auto clock = [&] {
      // Two of three readings are alike for a while, as on a device.
      const u64 now = 1000 + ++readings / 3 * 3;
      const u64 of = simt::block_number();
      const u64 barrier = at[of * block + simt::thread_number()];
      const auto [place, fresh] = clocks.try_emplace({of, barrier}, now, now);
      if (!fresh) place->second.second = std::max(place->second.second, now);
      return now;
    };
    REQUIRE(simt::run({{grid},
                       {block},
                       seed,
                       true,
                       [&] {
                         thread(simt::block_number(), simt::thread_number());
                         leave();
                       },
                       clock}) == "");
    REQUIRE(result.complete == seed);
    const device::Block nothing{};
    for (const device::Block& one : blocks) CHECK(std::memcmp(&one, &nothing, sizeof one) == 0);
    CHECK(tracker.retired == 0);
  }
  void meet(u64 pc, u32 index = 0, u32 threads = 0, u32 flags = kSync) {
    arrive(pc, index, threads, flags);
    simt::sync_block();
  }
  void arrive(u64 pc, u32 index = 0, u32 threads = 0, u32 flags = kSync) {
    u64& barrier = at[simt::block_number() * device::threads_of_block() + simt::thread_number()];
    ++barrier;
    simt::at_step(barrier);
    leadline_barrier(&tracker, pc, index, threads, flags);
  }
  void leave() {
    simt::at_step(1'000'000);
    at[simt::block_number() * device::threads_of_block() + simt::thread_number()] = 1'000'000;
    leadline_exit(&tracker, 0x9000);
  }
  Told of(u64 pc) const {
    for (u32 i = 0; i < result.instructions; ++i) {
      if (told[i].pc == pc) return {told[i].meetings, told[i].waited};
    }
    return {};
  }
  // What the clocks say of the barriers that every thread came to as its n-th.
  u64 waited(u64 barrier) const {
    u64 sum = 0;
    for (const auto& [key, span] : clocks) sum += key.second == barrier ? span.second - span.first : 0;
    return sum;
  }
};

}  // namespace

TEST_CASE("each meeting of a block is counted once, with the time from the first arrival to the last") {
  for (u64 seed = 1; seed <= 30; ++seed) {
    Launch launch(16);
    launch.run(5, 100, seed, [&](unsigned, unsigned) {
      for (int round = 0; round < 3; ++round) {
        launch.meet(0x100);
        launch.meet(0x200, 3);
      }
    });
    CHECK(launch.of(0x100).meetings == 15);
    CHECK(launch.of(0x200).meetings == 15);
    CHECK(launch.of(0x100).waited == launch.waited(1) + launch.waited(3) + launch.waited(5));
    CHECK(launch.of(0x200).waited == launch.waited(2) + launch.waited(4) + launch.waited(6));
    CHECK(launch.of(0x100).waited > 0);
    CHECK(launch.result.totals.lost_arrivals == 0);
  }
}

TEST_CASE("nobody waits for threads that have ended, before they come or while others wait") {
  for (u64 seed = 1; seed <= 60; ++seed) {
    Launch launch(16);
    launch.run(4, 100, seed, [&](unsigned block, unsigned thread) {
      for (u32 round = 0; round < 4; ++round) {
        // Half of a warp, a whole one, and all but the first.
        if (round == 1 && thread >= 80) return;
        if (round == 2 && thread / 32 == 1 && block % 2 == 0) return;
        if (round == 3 && thread >= 32) return;
        launch.meet(0x100 + u64{round} * 0x10);
      }
    });
    for (u64 round = 0; round < 4; ++round) CHECK(launch.of(0x100 + round * 0x10).meetings == 4);
    CHECK(launch.result.totals.lost_arrivals == 0);
    // Those that end are waited for until they do: the wait is as long as their arrivals say, or longer.
    u64 waited = 0;
    u64 least = 0;
    for (u64 round = 0; round < 4; ++round) {
      waited += launch.of(0x100 + round * 0x10).waited;
      least += launch.waited(round + 1);
    }
    CHECK(waited >= least);
    CHECK(waited <= 4 * (launch.readings + 3));
  }
}

TEST_CASE("a barrier of some warps by name, and threads that arrive without waiting") {
  for (u64 seed = 1; seed <= 20; ++seed) {
    Launch launch(8);
    launch.run(3, 96, seed, [&](unsigned, unsigned thread) {
      if (thread < 32) {
        launch.arrive(0x300, 2, 64, 0);  // a producer that goes on
      } else if (thread < 64) {
        launch.arrive(0x310, 2, 64, kSync);
      }
      simt::sync_block();
    });
    CHECK(launch.of(0x300).meetings + launch.of(0x310).meetings == 3);
    CHECK(launch.result.totals.lost_arrivals == 0);
  }
}

TEST_CASE("lanes of a warp that come apart are one warp") {
  Launch launch(8);
  launch.run(2, 64, 7, [&](unsigned, unsigned thread) {
    if (thread % 2 != 0) simt::at_step(0);
    launch.at[simt::block_number() * 64 + thread] = thread % 2 == 0 ? 0 : 10;
    launch.meet(0x100, 0, 0, kSync | kUnaligned);
  });
  CHECK(launch.of(0x100).meetings == 2);
  CHECK(launch.result.totals.lost_arrivals == 0);
}

TEST_CASE("blocks that meet in one place are followed or lost, never mixed") {
  for (u64 seed = 1; seed <= 30; ++seed) {
    Launch launch(2);
    launch.run(7, 64, seed, [&](unsigned, unsigned) {
      launch.meet(0x100);
      launch.meet(0x100);
    });
    const u64 lost = launch.result.totals.lost_arrivals;
    CHECK(launch.of(0x100).meetings * 2 + lost == 7 * 2 * 2);
    CHECK(launch.of(0x100).meetings >= 4);  // of the first two blocks
    CHECK(lost > 0);
    CHECK(launch.of(0x100).waited <= launch.waited(1) + launch.waited(2));
  }
}

TEST_CASE("a place is used again by the blocks that come later") {
  Launch launch(1);
  for (u64 number = 1; number <= 3; ++number) {
    launch.run(1, 64, number, [&](unsigned, unsigned) { launch.meet(0x100); });
    CHECK(launch.of(0x100).meetings == 1);
    CHECK(launch.result.totals.lost_arrivals == 0);
  }
}

TEST_CASE("threads that come twice before others have come once are lost, and the next launch is whole") {
  Launch launch(4);
  launch.run(2, 64, 5, [&](unsigned, unsigned thread) {
    if (thread < 32) {
      launch.arrive(0x100);
      launch.arrive(0x100);
    }
    simt::sync_block();
    launch.meet(0x100);
  });
  CHECK(launch.of(0x100).meetings == 0);
  CHECK(launch.result.totals.lost_arrivals == 8);
  launch.run(2, 64, 6, [&](unsigned, unsigned) { launch.meet(0x100, device::kBarriers); });
  CHECK(launch.result.totals.lost_arrivals == 4);  // beyond the barriers that are followed
  launch.run(2, 64, 7, [&](unsigned, unsigned) { launch.meet(0x100); });
  CHECK(launch.of(0x100).meetings == 2);
  CHECK(launch.result.totals.lost_arrivals == 0);
}
