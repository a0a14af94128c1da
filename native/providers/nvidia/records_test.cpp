// From CUPTI's records to neutral work, and how full a launch makes a device.
#include <doctest/doctest.h>

#include "providers/nvidia/occupancy.h"
#include "providers/nvidia/records.h"

namespace leadline::nvidia {
TEST_CASE("theoretical occupancy of known launches") {
  gpu::DeviceInfo h100;
  h100.major = 9;
  h100.multiprocessors = 132;
  h100.max_threads_per_multiprocessor = 2048;
  h100.max_blocks_per_multiprocessor = 32;
  h100.registers_per_multiprocessor = 65536;
  h100.shared_per_multiprocessor = 233472;
  h100.reserved_shared_per_block = 1024;
  const auto of = [&](std::int64_t blocks, std::int32_t threads, std::int32_t registers, std::int64_t shared) {
    return theoretical_occupancy({blocks, threads, registers, 0, shared, 0}, h100);
  };
  CHECK(of(132, 256, 32, 0).occupancy_millionths == 1'000'000);
  CHECK(of(132, 256, 64, 0).occupancy_millionths == 500'000);   // registers
  CHECK(of(132, 256, 255, 0).occupancy_millionths == 125'000);  // one block of 8 warps
  CHECK(of(132, 32, 32, 0).occupancy_millionths == 500'000);    // blocks: 32 warps of 64
  CHECK(of(132, 1024, 32, 0).blocks_per_multiprocessor == 2);
  CHECK(of(132, 256, 32, 227 * 1024).blocks_per_multiprocessor == 1);  // shared memory
  CHECK(of(132 * 8, 256, 32, 0).waves_thousandths == 1000);
  CHECK(of(132 * 8 * 5 / 2, 256, 32, 0).waves_thousandths == 2500);
  CHECK(theoretical_occupancy({1, 32, 32, 0, 0, 0}, gpu::DeviceInfo{}).blocks_per_multiprocessor == 0);
}

TEST_CASE("records without times are not work") {
  cupti::KernelRecord record{};
  record.kind = cupti::Kind::kConcurrentKernel;
  CHECK(decode(reinterpret_cast<const cupti::Record&>(record), cupti::kVersion13_0, 0).kind == gpu::WorkKind::kNone);
  record.start = 10;
  record.end = 30;
  record.grid[0] = record.grid[1] = record.grid[2] = 2;
  record.block[0] = 4;
  record.block[1] = record.block[2] = 1;
  const gpu::Work work = decode(reinterpret_cast<const cupti::Record&>(record), cupti::kVersion13_0, 5);
  REQUIRE(work.kind == gpu::WorkKind::kKernel);
  CHECK(work.start_ns == 15);
  CHECK(work.blocks == 8);
}

TEST_CASE("kinds of copies and memory that a later CUPTI may add are unknown, not out of bounds") {
  cupti::MemcpyRecord record{};
  record.kind = cupti::Kind::kMemcpy;
  record.start = record.end = 10;
  record.copy_kind = record.source_kind = record.destination_kind = 99;
  const gpu::Work work = decode(reinterpret_cast<const cupti::Record&>(record), cupti::kVersion13_0, 0);
  CHECK(work.direction == gpu::Direction::kUnknown);
  CHECK(work.source == gpu::Memory::kUnknown);
  CHECK(work.destination == gpu::Memory::kUnknown);
}

}  // namespace leadline::nvidia
