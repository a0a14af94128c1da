// Programs of device_program.h on the stand-in, and their results beside the reference. Included behind simt.h and
// patches.cu, whose functions it calls.
#pragma once

#include <algorithm>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "testing/simt/device_program.h"
#include "testing/simt/simt.h"

namespace leadline::simt {

// Memory of the device and pinned memory, on the host.
struct Memory {
  device::Tracker tracker{};
  std::vector<device::Sums> sums;
  std::vector<u32> touched;
  std::vector<u32> page_words;
  std::vector<device::Instruction> instructions;
  std::vector<device::RawAccess> raw;
  device::Result result{};
  std::vector<Row> rows;
  std::vector<u32> words;
  std::vector<device::Instruction> result_instructions;

  Memory(const Program& program, u32 want, size_t row_room, size_t word_room, size_t instruction_room, size_t raw_room)
      : sums(program.ranges.size()),
        touched(program.ranges.size()),
        page_words(program.words),
        instructions(instruction_room),
        raw(raw_room),
        rows(row_room),
        words(word_room),
        result_instructions(instruction_room) {
    device::Setup& setup = tracker.setup;
    setup.version = device::kVersion;
    setup.range_count = static_cast<u32>(program.ranges.size());
    setup.page_shift = program.shape.page_shift;
    setup.want = want;
    setup.ranges = program.ranges.data();
    setup.sums = sums.data();
    setup.touched = touched.data();
    setup.page_words = page_words.data();
    setup.threads_expected = program.threads.size();
    setup.instructions = instruction_room != 0 ? instructions.data() : nullptr;
    setup.instruction_room = static_cast<u32>(instruction_room);
    setup.row_room = static_cast<u32>(row_room);
    setup.word_room = static_cast<u32>(word_room);
    setup.result_instruction_room = static_cast<u32>(instruction_room);
    setup.result = &result;
    setup.rows = rows.data();
    setup.words = words.data();
    setup.result_instructions = result_instructions.data();
    setup.raw = raw.data();
    setup.raw_room = raw_room;
  }
  // Empty, or what a launch has left behind in the device's own memory.
  std::string left() const {
    const auto any = [](const void* at, size_t bytes) {
      const auto* byte = static_cast<const unsigned char*>(at);
      return std::any_of(byte, byte + bytes, [](unsigned char one) { return one != 0; });
    };
    if (any(sums.data(), sums.size() * sizeof(device::Sums))) return "sums were left behind";
    if (any(page_words.data(), page_words.size() * 4)) return "page bits were left behind";
    if (any(instructions.data(), instructions.size() * sizeof(device::Instruction))) return "instructions were left";
    if (any(&tracker.totals, sizeof(tracker.totals))) return "totals were left behind";
    if (tracker.threads_done != 0 || tracker.touched_count != 0 || tracker.raw_used != 0) return "counts were left";
    return {};
  }
};

inline constexpr u64 kProgramPc = 0x7f9000001000;

inline void act(void* user, const Done& done, u64 pc) {
  auto* address = reinterpret_cast<void*>(done.address);
  switch (done.does) {
    case Does::kRead:
      leadline_global(user, pc, address, done.bytes, 1, nullptr);
      break;
    case Does::kWrite:
      leadline_global(user, pc, address, done.bytes, 2, done.data);
      break;
    case Does::kAtomic:
      leadline_global(user, pc, address, done.bytes, 3, nullptr);
      break;
    case Does::kReduce:
      leadline_global(user, pc, address, done.bytes, 2 | 256, nullptr);
      break;
    case Does::kPrefetch:
      leadline_global(user, pc, address, done.bytes, 1 | 8, nullptr);
      break;
    case Does::kMemcpyAsync:
      if (done.zeros != 0) {
        leadline_memcpy_async_filled(user, pc, address, 0, done.bytes, done.zeros);
      } else {
        leadline_memcpy_async(user, pc, address, 0, done.bytes);
      }
      break;
    case Does::kBulkLoad:
      leadline_bulk_load(user, pc, done.address, 0, 0, done.bytes / 16 | 0x30000, 1);
      break;
    case Does::kBulkStore:
      leadline_bulk_store(user, pc, done.address, 0, done.bytes / 16 | 0xffff0000);
      break;
    case Does::kBulkReduce:
      leadline_bulk_reduce(user, pc, done.address, 0, done.bytes / 16);
      break;
  }
}

// Empty, or the sentence of a deadlock.
inline std::string launch(const Program& program, Memory& memory, u64 number, u64 seed) {
  memory.tracker.setup.launch = number;
  const Shape& shape = program.shape;
  return run({{shape.blocks}, {shape.threads}, seed, shape.together, [&] {
                const auto& thread = program.threads[block_number() * shape.threads + thread_number()];
                u64 step = 0;
                for (const Done& done : thread) {
                  at_step(step);
                  if (done.active) act(&memory.tracker, done, kProgramPc + step * 16);
                  ++step;
                }
                at_step(1'000'000 + step);
                leadline_exit(&memory.tracker, kProgramPc + step * 16);
              }});
}

inline std::string compare_row(const Row& row, const Row& expected) {
  std::ostringstream told;
  const auto same = [&](const char* what, u64 one, u64 other) {
    if (one != other) told << ' ' << what << ' ' << one << " instead of " << other << ';';
  };
  same("object", row.object, expected.object);
  same("reads", row.reads, expected.reads);
  same("writes", row.writes, expected.writes);
  same("atomics", row.atomics, expected.atomics);
  same("read_bytes", row.read_bytes, expected.read_bytes);
  same("written_bytes", row.written_bytes, expected.written_bytes);
  same("atomic_bytes", row.atomic_bytes, expected.atomic_bytes);
  same("least", row.least, expected.least);
  same("most", row.most, expected.most);
  same("pages", row.pages, expected.pages);
  same("nan", row.nan, expected.nan);
  same("inf", row.inf, expected.inf);
  return told.str();
}

// Empty where the result says what the reference says, else the first difference.
inline std::string compare(const Memory& memory, const Expected& expected) {
  const device::Result& result = memory.result;
  if (result.complete != memory.tracker.setup.launch) return "the launch did not complete";
  if (result.rows != expected.rows.size()) {
    return "rows: " + std::to_string(result.rows) + " instead of " + std::to_string(expected.rows.size());
  }
  if (result.totals.outside != expected.totals.outside) {
    return "accesses in no range: " + std::to_string(result.totals.outside) + " instead of " +
           std::to_string(expected.totals.outside);
  }
  if (result.totals.outside_bytes != expected.totals.outside_bytes) return "bytes in no range differ";
  if (result.totals.overrun_bytes != expected.totals.overrun_bytes) return "bytes beyond ends differ";
  if (result.totals.prefetches != expected.totals.prefetches) return "prefetches differ";
  for (u32 point = 0; point < device::kPoints; ++point) {
    if (result.totals.points[point].threads != expected.totals.points[point].threads) {
      return "threads at point " + std::to_string(point) + " differ";
    }
  }
  for (u32 index = 0; index < result.rows; ++index) {
    const Row& row = memory.rows[index];
    const auto found = expected.rows.find(row.range);
    if (found == expected.rows.end()) return "range " + std::to_string(row.range) + " was not touched";
    const std::string difference = compare_row(row, found->second);
    if (!difference.empty()) return "range " + std::to_string(row.range) + ":" + difference;
    std::set<u64> pages;
    for (u32 bit = 0; bit < row.word_count * 32; ++bit) {
      if ((memory.words[row.first_word + bit / 32] >> bit % 32 & 1) != 0) pages.insert(row.first_page + bit);
    }
    if (pages != expected.pages.at(row.range)) return "pages of range " + std::to_string(row.range) + " differ";
  }
  return memory.left();
}

// Draws a program, runs it twice on one tracker, compares both times. `accesses` grows by how many there were.
inline std::string check(const Shape& shape, u64* accesses = nullptr) {
  const Program program = draw(shape);
  const Expected expected = expect(program);
  Memory memory(program, device::kWantPages | device::kWantValues | device::kWantPoints, program.ranges.size(),
                program.words, 0, 0);
  for (u64 number = 1; number <= 2; ++number) {
    std::string problem = launch(program, memory, number, shape.seed * 31 + number);
    if (problem.empty()) problem = compare(memory, expected);
    if (!problem.empty()) return problem;
    if (accesses != nullptr) *accesses += expected.accesses;
  }
  return {};
}

}  // namespace leadline::simt
