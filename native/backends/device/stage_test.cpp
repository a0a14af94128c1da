// The text of the device, on the stand-in, against a slow reference: a million accesses at edges, in gaps, with lanes
// left out, over one range and over 65,536; what finds no room; instructions, banks, raw streams.
#include <doctest/doctest.h>

#include "testing/simt/simt.h"
// clang-format off
#include "backends/device/patches.cu"
#include "testing/simt/device_run.h"
// clang-format on
#include "backends/device/raw_stream.h"

using namespace leadline;
using namespace leadline::simt;

TEST_CASE("a million accesses equal the reference in every sum and page") {
  u64 accesses = 0;
  for (u64 seed = 1; accesses < 1'000'000; ++seed) {
    Shape shape;
    shape.seed = seed;
    const unsigned ranges[] = {1, 3, 20, 300, 5000};
    shape.ranges = ranges[seed % 5];
    shape.blocks = 1 + seed % 4;
    shape.threads = seed % 3 == 0 ? 64 : 80 + seed % 7;
    shape.steps = 250;
    shape.page_shift = seed % 2 == 0 ? 12 : 7 + static_cast<u32>(seed % 14);
    shape.together = seed % 4 != 0;
    CAPTURE(seed);
    REQUIRE(check(shape, &accesses) == "");
  }
}

TEST_CASE("65,536 ranges") {
  Shape shape;
  shape.seed = 99;
  shape.ranges = 65'536;
  shape.steps = 150;
  shape.blocks = 3;
  shape.most_bytes = 4096;
  CHECK(check(shape) == "");
}

TEST_CASE("the same program in another order gives the same result") {
  Shape shape;
  const Program program = draw(shape);
  const Expected expected = expect(program);
  Memory memory(program, device::kWantPages | device::kWantValues | device::kWantPoints, 100, program.words, 0, 0);
  for (u64 seed = 1; seed <= 20; ++seed) {
    REQUIRE(launch(program, memory, seed, seed) == "");
    REQUIRE(compare(memory, expected) == "");
  }
}

TEST_CASE("what finds no room in the result is counted, and nothing stays behind") {
  const Program program = draw({});
  const Expected expected = expect(program);
  REQUIRE(expected.rows.size() > 8);
  Memory memory(program, device::kWantPages, 4, 2, 0, 0);
  REQUIRE(launch(program, memory, 7, 1) == "");
  CHECK(memory.result.complete == 7);
  CHECK(memory.result.rows == 4);
  CHECK(memory.result.lost_rows == expected.rows.size() - 4);
  CHECK(memory.result.words <= 2);
  CHECK(memory.result.lost_words > 0);
  CHECK(memory.left() == "");
  u32 without = 0;
  for (const Row& row : memory.rows) {
    CHECK(row.pages == expected.pages.at(row.range).size());
    without += row.word_count == 0 ? 1 : 0;
  }
  CHECK(without == memory.result.lost_words);
}

TEST_CASE("what is not measured costs no record and still completes") {
  const Program program = draw({});
  Memory memory(program, 0, 100, 0, 0, 0);
  memory.tracker.setup.range_count = 0;
  REQUIRE(launch(program, memory, 3, 1) == "");
  CHECK(memory.result.complete == 3);
  CHECK(memory.result.rows == 0);
  CHECK(memory.result.totals.outside == 0);

  memory.tracker.setup.version = device::kVersion + 1;  // of another release: nothing is touched
  REQUIRE(launch(program, memory, 4, 1) == "");
  CHECK(memory.result.complete == 3);
  CHECK(leadline_global(nullptr, 0, nullptr, 4, 1, nullptr) == 0);
}

TEST_CASE("a launch is complete when the last thread has ended, not before") {
  const Program program = draw({});
  Memory memory(program, 0, 100, 0, 0, 0);
  memory.tracker.setup.threads_expected += 1;
  REQUIRE(launch(program, memory, 3, 1) == "");
  CHECK(memory.result.complete == 0);
  CHECK(memory.tracker.threads_done == program.threads.size());
}

TEST_CASE("a warp's access to what was touched before costs one atomic for each range") {
  Shape shape;
  shape.ranges = 2;
  shape.blocks = 1;
  shape.threads = 32;
  Program program = draw(shape);
  const auto atomics = [&](unsigned times, bool both) {
    for (auto& thread : program.threads) thread.assign(times, {});
    for (unsigned step = 0; step < times; ++step) {
      for (unsigned lane = 0; lane < 32; ++lane) {
        Done& done = program.threads[lane][step];
        done.active = true;
        done.bytes = 4;
        done.address = program.ranges[both ? lane % 2 : 0].begin + lane * 4 % 16;
      }
    }
    Memory memory(program, device::kWantPages, 10, program.words, 0, 0);
    REQUIRE(launch(program, memory, 1, 1) == "");
    REQUIRE(memory.result.rows == (both ? 2 : 1));
    return leadline::simt::atomics();
  };
  CHECK(atomics(101, false) - atomics(1, false) == 100);
  CHECK(atomics(101, true) - atomics(1, true) == 200);
}

TEST_CASE("copies by tensor maps are counted whatever is wanted, since their bytes are not") {
  const Program program = draw({});
  Memory memory(program, device::kWantPages, 10, program.words, 0, 0);
  memory.tracker.setup.launch = 5;
  memory.tracker.setup.threads_expected = 64;
  REQUIRE(run({{2}, {32}, 1, true, [&] {
                 at_step(0);
                 if (thread_number() == 7) leadline_tma_load(&memory.tracker, 16, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0);
                 at_step(1);
                 leadline_exit(&memory.tracker, 32);
               }}) == "");
  REQUIRE(memory.result.complete == 5);
  CHECK(memory.result.totals.points[device::kTma].threads == 2);
  CHECK(memory.result.totals.points[device::kExit].threads == 0);
  CHECK(memory.result.rows == 0);
}

TEST_CASE("instructions: how often, with how many lanes, and what finds no room") {
  Shape shape;
  shape.threads = 80;
  const Program program = draw(shape);
  Memory memory(program, device::kWantInstructions | device::kWantPoints, 100, 0, 256, 0);
  REQUIRE(launch(program, memory, 1, 5) == "");
  std::map<u64, device::Instruction> seen;
  for (u32 index = 0; index < memory.result.instructions; ++index) {
    const device::Instruction& one = memory.result_instructions[index];
    CHECK(seen.emplace(one.pc, one).second);
  }
  CHECK(memory.left() == "");
  u64 warps = 0;
  for (unsigned step = 0; step < shape.steps; ++step) {
    device::Instruction expected{};
    for (size_t first = 0; first < program.threads.size();) {
      const size_t lanes = std::min<size_t>(32, shape.threads - first % shape.threads);
      u64 active = 0;
      for (size_t lane = 0; lane < lanes; ++lane) {
        const auto& thread = program.threads[first + lane];
        if (step < thread.size() && thread[step].active) ++active;
      }
      expected.warps += active != 0 ? 1 : 0;
      expected.threads += active;
      expected.split += active != 0 && active != lanes ? 1 : 0;
      first += lanes;
    }
    // Threads that end at this step pass the exit at the same address.
    const auto ends = static_cast<u64>(std::count_if(program.threads.begin(), program.threads.end(),
                                                     [&](const auto& thread) { return thread.size() == step; }));
    const device::Instruction& one = seen[kProgramPc + step * 16];
    CHECK(one.threads == expected.threads + ends);
    if (ends == 0) {
      CHECK(one.warps == expected.warps);
      CHECK(one.split == expected.split);
    }
    warps += expected.warps;
  }
  u64 of_points = 0;
  for (u32 point = 0; point < device::kExit; ++point) of_points += memory.result.totals.points[point].warps;
  CHECK(of_points == warps);

  Memory little(program, device::kWantInstructions, 100, 0, 16, 0);
  REQUIRE(launch(program, little, 1, 5) == "");
  CHECK(little.result.instructions == 16);
  CHECK(little.result.totals.lost_instructions > 0);
  CHECK(little.left() == "");
}

TEST_CASE("bank conflicts equal a count by hand and by brute force") {
  device::Tracker tracker{};
  device::Result result{};
  tracker.setup.version = device::kVersion;
  tracker.setup.want = device::kWantConflicts;
  tracker.setup.threads_expected = 32;
  tracker.setup.result = &result;
  u64 number = 0;
  const auto conflicts = [&](const std::vector<u32>& offsets, u32 bytes, u32 mask) {
    tracker.setup.launch = ++number;
    REQUIRE(run({{1}, {32}, number, true, [&] {
                   at_step(0);
                   const unsigned lane = thread_number();
                   if ((mask >> lane & 1) != 0) {
                     leadline_shared(&tracker, 16, reinterpret_cast<void*>(u64{offsets[lane]}), bytes, 1, nullptr);
                   }
                   at_step(1);
                   leadline_exit(&tracker, 32);
                 }}) == "");
    REQUIRE(result.complete == number);
    return result.totals.conflicts;
  };
  std::vector<u32> offsets(32);
  const auto stride = [&](u32 bytes) {
    for (u32 lane = 0; lane < 32; ++lane) offsets[lane] = lane * bytes;
    return offsets;
  };
  CHECK(conflicts(stride(4), 4, ~0u) == 0);
  CHECK(conflicts(stride(8), 4, ~0u) == 1);
  CHECK(conflicts(stride(128), 4, ~0u) == 31);
  CHECK(conflicts(stride(0), 4, ~0u) == 0);
  CHECK(conflicts(stride(128), 4, 0x0000000f) == 3);
  CHECK(conflicts(stride(8), 8, ~0u) == 0);
  CHECK(conflicts(stride(16), 16, ~0u) == 0);
  CHECK(conflicts(stride(1), 1, ~0u) == 0);
  std::mt19937 random(5);
  for (int round = 0; round < 300; ++round) {
    const u32 bytes = 1u << random() % 5;
    for (u32& offset : offsets) offset = static_cast<u32>(random() % (random() % 2 == 0 ? 256 : 8192)) / bytes * bytes;
    const u32 mask = round % 3 == 0 ? ~0u : static_cast<u32>(random()) | 1u;
    const u32 unit = std::max(4u, bytes);
    const u32 lanes = 128 / unit;
    u64 expected = 0;
    for (u32 part = 0; part < 32; part += lanes) {
      std::map<u32, std::set<u32>> banks;
      size_t most = 0;
      for (u32 lane = part; lane < part + lanes; ++lane) {
        if ((mask >> lane & 1) == 0) continue;
        auto& words = banks[offsets[lane] / unit % lanes];
        words.insert(offsets[lane] / unit);
        most = std::max(most, words.size());
      }
      if (most > 1) expected += most - 1;
    }
    CHECK(conflicts(offsets, bytes, mask) == expected);
  }
}

TEST_CASE("analysis on the host of the raw stream gives the same rows") {
  Shape shape;
  shape.steps = 200;
  const Program program = draw(shape);
  const Expected expected = expect(program);
  Memory memory(program, device::kWantRaw, 100, 0, 0, expected.accesses);
  REQUIRE(launch(program, memory, 1, 3) == "");
  CHECK(memory.result.raw == expected.accesses);
  CHECK(memory.result.rows == 0);
  const device::Analysed analysed =
      device::analyse(memory.raw.data(), memory.result.raw, program.ranges.data(), program.ranges.size(), 12);
  CHECK(analysed.outside == expected.totals.outside);
  CHECK(analysed.outside_bytes == expected.totals.outside_bytes);
  CHECK(analysed.overrun_bytes == expected.totals.overrun_bytes);
  REQUIRE(analysed.rows.size() == expected.rows.size());
  for (const Row& row : analysed.rows) {
    Row wanted = expected.rows.at(row.range);
    wanted.nan = 0;
    wanted.inf = 0;
    CHECK(compare_row(row, wanted) == "");
    std::set<u64> pages;
    for (u32 bit = 0; bit < row.word_count * 32; ++bit) {
      if ((analysed.words[row.first_word + bit / 32] >> bit % 32 & 1) != 0) pages.insert(bit);
    }
    CHECK(pages == expected.pages.at(row.range));
  }

  Memory little(program, device::kWantRaw, 100, 0, 0, 1000);  // a stream that does not fit says how much there was
  REQUIRE(launch(program, little, 1, 3) == "");
  CHECK(little.result.raw == expected.accesses);
}
