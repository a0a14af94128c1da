// The patches that only count: each at its own point, by its own instruction, with the lanes that came.
#include <doctest/doctest.h>

#include "testing/simt/simt.h"
// clang-format off
#include "backends/device/patches.cu"
// clang-format on

#include <map>
#include <vector>

using namespace leadline;
using device::u32;
using device::u64;

TEST_CASE("barriers, local memory, matrices: each point and instruction counts its warps and lanes") {
  device::Tracker tracker{};
  device::Result result{};
  std::vector<device::Instruction> instructions(64);
  std::vector<device::Instruction> told(64);
  device::Setup& setup = tracker.setup;
  setup.version = device::kVersion;
  setup.want = device::kWantPoints | device::kWantInstructions;
  setup.launch = 9;
  setup.threads_expected = 2 * 48;
  setup.instructions = instructions.data();
  setup.instruction_room = 64;
  setup.result_instruction_room = 64;
  setup.result_instructions = told.data();
  setup.result = &result;
  REQUIRE(simt::run({{2}, {48}, 3, true, [&] {
                       const unsigned thread = simt::thread_number();
                       simt::at_step(0);
                       leadline_barrier(&tracker, 0x100, 0, 48, 2);
                       simt::at_step(1);
                       if (thread % 2 == 0) leadline_syncwarp(&tracker, 0x110, 0x55555555);
                       simt::at_step(2);
                       if (thread < 32) leadline_local(&tracker, 0x120, nullptr, 8, 2, nullptr);
                       simt::at_step(3);
                       if (thread >= 32) leadline_matrix(&tracker, 0x130, 64, 16, 1, 4, nullptr);
                       simt::at_step(4);
                       leadline_cluster_barrier(&tracker, 0x140);
                       simt::at_step(5);
                       leadline_shared(&tracker, 0x150, reinterpret_cast<void*>(u64{thread} * 8), 4, 1, nullptr);
                       simt::at_step(6);
                       leadline_exit(&tracker, 0x160);
                     }}) == "");
  REQUIRE(result.complete == 9);
  const auto point = [&](u32 number) { return result.totals.points[number]; };
  CHECK((point(device::kBarrier).warps == 4 && point(device::kBarrier).threads == 96));
  CHECK((point(device::kSyncwarp).warps == 4 && point(device::kSyncwarp).threads == 48));
  CHECK((point(device::kLocal).warps == 2 && point(device::kLocal).threads == 64));
  CHECK((point(device::kMatrix).warps == 2 && point(device::kMatrix).threads == 32));
  CHECK((point(device::kClusterBarrier).warps == 4 && point(device::kClusterBarrier).threads == 96));
  CHECK((point(device::kShared).warps == 4 && point(device::kShared).threads == 96));
  CHECK((point(device::kExit).warps == 4 && point(device::kExit).threads == 96));
  CHECK(point(device::kGlobal).warps == 0);
  CHECK(result.totals.conflicts == 0);  // nobody has asked for them
  REQUIRE(result.instructions == 7);
  std::map<u64, device::Instruction> by_pc;
  for (u32 index = 0; index < 7; ++index) by_pc[told[index].pc] = told[index];
  CHECK(by_pc[0x100].split == 0);
  CHECK(by_pc[0x110].split == 4);
  CHECK((by_pc[0x120].bytes == 64 * 8 && by_pc[0x120].kind == device::kWrite));
  CHECK((by_pc[0x130].bytes == 32 * 64 && by_pc[0x130].kind == device::kRead));
  CHECK((by_pc[0x150].point == device::kShared && by_pc[0x150].warps == 4));
}
