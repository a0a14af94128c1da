// The functions that the device's text has (native/backends/device/patches.cu), written anew and simply for the host:
// thread by thread, with a map. What the host half is tested with, and a second opinion on what tracker.h says.

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <map>
#include <mutex>
#include <set>

#include "backends/device/tracker.h"

namespace {

using namespace leadline::device;

struct InRange {
  u64 counts[3] = {};
  u64 bytes[3] = {};
  u64 least = ~u64{0};
  u64 most = 0;
  u64 nan = 0;
  u64 inf = 0;
  std::set<u64> pages;
};

struct State {
  u64 launch = 0;
  u64 threads = 0;
  u64 outside = 0;
  u64 raw = 0;
  std::map<u32, InRange> ranges;
  std::map<u64, Instruction> instructions;
};

std::mutex mutex;
std::map<Tracker*, State> states;

// Index of what is counted apart: reads, writes, atomics.
u32 kind_of(u32 flags) { return flags == 3 ? 2 : flags == 2 ? 1 : 0; }

State* state_of(void* user) {
  auto* const tracker = static_cast<Tracker*>(user);
  if (tracker == nullptr || tracker->setup.version != kVersion) return nullptr;
  State& state = states[tracker];
  if (state.launch != tracker->setup.launch) state = State{};
  state.launch = tracker->setup.launch;
  return &state;
}

void note(void* user, State& state, u64 pc, u32 point) {
  if ((static_cast<Tracker*>(user)->setup.want & kWantInstructions) == 0) return;
  Instruction& one = state.instructions[pc];
  one.pc = pc;
  one.point = point;
  ++one.warps;
  ++one.threads;
}

void sum(void* user, u64 pc, u64 address, u32 bytes, u32 kind, const void* data, u32 point) {
  const std::lock_guard lock(mutex);
  State* const state = state_of(user);
  if (state == nullptr) return;
  note(user, *state, pc, point);
  const Setup& setup = static_cast<Tracker*>(user)->setup;
  if ((setup.want & kWantRaw) != 0) {
    if (state->raw < setup.raw_room) setup.raw[state->raw] = {address, pc, bytes, kind};
    ++state->raw;
    return;
  }
  for (u32 i = 0; i < setup.range_count; ++i) {
    const Range& range = setup.ranges[i];
    if (address < range.begin || address >= range.end) continue;
    InRange& in = state->ranges[i];
    const u64 offset = address - range.begin;
    const u64 end = std::min(offset + bytes, range.end - range.begin);
    ++in.counts[kind];
    in.bytes[kind] += bytes;
    in.least = std::min(in.least, offset);
    in.most = std::max(in.most, end);
    for (u64 page = offset >> setup.page_shift; page <= (end - 1) >> setup.page_shift; ++page) in.pages.insert(page);
    if (data != nullptr && range.element == kFloat32 && (setup.want & kWantValues) != 0) {
      float value = 0;
      std::memcpy(&value, data, sizeof value);
      in.nan += std::isnan(value) ? 1 : 0;
      in.inf += std::isinf(value) ? 1 : 0;
    }
    return;
  }
  ++state->outside;
}

u32 write_words(const Setup& setup, const InRange& in, Row& row, u32 used) {
  const u64 first = *in.pages.begin() / 32 * 32;
  const u64 count = *in.pages.rbegin() / 32 - first / 32 + 1;
  if (used + count > setup.word_room) return used;
  row.first_page = static_cast<u32>(first);
  row.word_count = static_cast<u32>(count);
  row.first_word = used;
  std::fill_n(setup.words + used, count, 0U);
  for (const u64 page : in.pages) setup.words[used + (page - first) / 32] |= 1U << (page % 32);
  return used + static_cast<u32>(count);
}

void finish(const Setup& setup, const State& state) {
  Result& result = *setup.result;
  // All but `complete`, which the host may be reading.
  std::memset(&result.threads, 0, sizeof result - offsetof(Result, threads));
  result.threads = state.threads;
  result.totals.outside = state.outside;
  result.raw = state.raw;
  for (const auto& [index, in] : state.ranges) {
    if (result.rows == setup.row_room) {
      ++result.lost_rows;
      continue;
    }
    Row& row = setup.rows[result.rows++];
    row = {};
    row.object = setup.ranges[index].object;
    row.range = index;
    row.reads = in.counts[0];
    row.writes = in.counts[1];
    row.atomics = in.counts[2];
    row.read_bytes = in.bytes[0];
    row.written_bytes = in.bytes[1];
    row.atomic_bytes = in.bytes[2];
    row.least = in.least;
    row.most = in.most;
    row.pages = in.pages.size();
    row.nan = in.nan;
    row.inf = in.inf;
    result.words = write_words(setup, in, row, result.words);
  }
  for (const auto& [pc, one] : state.instructions) {
    if (result.instructions < setup.result_instruction_room) setup.result_instructions[result.instructions++] = one;
  }
  std::atomic_ref(result.complete).store(setup.launch, std::memory_order_release);
}

}  // namespace

#define PATCH extern "C" __attribute__((visibility("default"))) int

PATCH leadline_exit(void* user, u64) {
  const std::lock_guard lock(mutex);
  State* const state = state_of(user);
  if (state == nullptr) return 0;
  const Setup& setup = static_cast<Tracker*>(user)->setup;
  if (++state->threads != setup.threads_expected) return 0;
  const State done = *state;
  states.erase(static_cast<Tracker*>(user));
  finish(setup, done);
  return 0;
}
PATCH leadline_global(void* user, u64 pc, void* address, u32 bytes, u32 flags, const void* data) {
  sum(user, pc, reinterpret_cast<u64>(address), bytes, kind_of(flags), data, kGlobal);
  return 0;
}
PATCH leadline_memcpy_async(void* user, u64 pc, void* source, u32, u32 bytes, u32 zeros) {
  sum(user, pc, reinterpret_cast<u64>(source), bytes - zeros, 0, nullptr, kMemcpyAsync);
  return 0;
}
PATCH leadline_barrier(void* user, u64 pc, u32, u32, u32) {
  const std::lock_guard lock(mutex);
  if (State* const state = state_of(user)) note(user, *state, pc, kBarrier);
  return 0;
}
PATCH leadline_shared(void* user, u64 pc, void*, u32, u32, const void*) {
  const std::lock_guard lock(mutex);
  if (State* const state = state_of(user)) note(user, *state, pc, kShared);
  return 0;
}
PATCH leadline_bulk_load(void*, u64, u64, u32, u32, u32, u32) { return 0; }
PATCH leadline_bulk_store(void*, u64, u64, u32, u32, u32) { return 0; }
PATCH leadline_bulk_reduce(void*, u64, u64, u32, u32) { return 0; }
PATCH leadline_matrix(void*, u64, u32, u32, u32, u32, const void*) { return 0; }
PATCH leadline_cluster_barrier(void*, u64) { return 0; }
PATCH leadline_syncwarp(void*, u64, u32) { return 0; }
PATCH leadline_tma_load(void*, u64, u64, u32, u32, int, int, int, int, int, u32, u32, u32, u32) { return 0; }
