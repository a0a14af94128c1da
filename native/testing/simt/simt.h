// A device on the host: warps of 32 lanes as fibers, so that text written for a GPU runs under g++ and its sanitizers.
//
// Include it before the text: it gives CUDA's words (__activemask, __match_any_sync ...) and those of
// backends/device/lanes.h. One thread of the host runs all lanes of all blocks, in an order drawn from a seed: a lane
// may be left at every word that other lanes can notice. A collective gathers the lanes of its mask at one place of the
// source; where lanes wait for lanes that have ended, have left or wait elsewhere, run() says so in a sentence. It does
// not know shared memory, clusters, or weak memory: what one lane writes, the others see at once.
#pragma once

#include <cstdint>
#include <functional>
#include <source_location>
#include <string>

namespace leadline::simt {

struct Size {
  unsigned x = 1;
  unsigned y = 1;
  unsigned z = 1;
};

// What runs is called once for each thread.
struct Launch {
  Size grid;
  Size block;
  uint64_t seed = 0;
  // Whether lanes that could go together always do. Otherwise the device parts them as it likes, as it may.
  bool together = true;
  std::function<void()> thread;
  // What the device's clock says; without it, the number of the reading.
  std::function<uint64_t()> clock = nullptr;
};

// Empty, or what went wrong: the sentence of a deadlock.
std::string run(const Launch& launch);

// Of the running thread, for the program of a test.
unsigned block_number();
unsigned thread_number();  // in its block
// Lanes come together only at equal steps: the program of a test counts them up with each instruction.
void at_step(uint64_t step);

// A barrier of the block: goes on when all its threads that have not ended wait here.
void sync_block();

// Atomic operations of all lanes in the launch under way, or in the last one.
uint64_t atomics();

namespace words {

using Place = std::source_location;
unsigned active_mask();
unsigned match_any(unsigned mask, unsigned long long value, const Place& place);
unsigned ballot(unsigned mask, bool value, const Place& place);
unsigned long long shuffle(unsigned mask, unsigned long long value, unsigned lane, const Place& place);
void sync_warp(unsigned mask, const Place& place);
void may_leave();  // another lane may run now
void count_atomic();
unsigned lane();
unsigned lanes_of_warp();
unsigned threads_of_block();
uint64_t clock();

}  // namespace words
}  // namespace leadline::simt

// ---------------------------------------------------------------- CUDA's words
// NOLINTBEGIN(bugprone-reserved-identifier)

inline unsigned __activemask() { return leadline::simt::words::active_mask(); }
inline unsigned __match_any_sync(unsigned mask, unsigned long long value,
                                 const std::source_location& place = std::source_location::current()) {
  return leadline::simt::words::match_any(mask, value, place);
}
inline unsigned __ballot_sync(unsigned mask, bool value,
                              const std::source_location& place = std::source_location::current()) {
  return leadline::simt::words::ballot(mask, value, place);
}
template <typename T>
T __shfl_sync(unsigned mask, T value, int lane, const std::source_location& place = std::source_location::current()) {
  return static_cast<T>(
      leadline::simt::words::shuffle(mask, static_cast<unsigned long long>(value), static_cast<unsigned>(lane), place));
}
inline void __syncwarp(unsigned mask, const std::source_location& place = std::source_location::current()) {
  leadline::simt::words::sync_warp(mask, place);
}
inline int __popc(unsigned bits) { return __builtin_popcount(bits); }
inline int __ffs(int bits) { return __builtin_ffs(bits); }
inline int __clz(int bits) { return bits == 0 ? 32 : __builtin_clz(static_cast<unsigned>(bits)); }
inline void __threadfence() { leadline::simt::words::may_leave(); }
inline void __threadfence_system() { leadline::simt::words::may_leave(); }

template <typename T>
T __ldcv(const T* at) {
  leadline::simt::words::may_leave();
  return *at;
}
// NOLINTEND(bugprone-reserved-identifier)

namespace leadline::device {

inline unsigned this_lane() { return leadline::simt::words::lane(); }
inline unsigned lanes_of_warp() { return leadline::simt::words::lanes_of_warp(); }
inline unsigned threads_of_block() { return leadline::simt::words::threads_of_block(); }
inline unsigned warp_of_block() { return leadline::simt::thread_number() / 32; }
inline unsigned long long block_of_grid() { return leadline::simt::block_number(); }
inline unsigned long long cycles() { return leadline::simt::words::clock(); }

namespace stand_in {

template <typename T, typename Change>
T change(T* at, const Change& change) {
  leadline::simt::words::may_leave();
  leadline::simt::words::count_atomic();
  const T before = *at;
  *at = change(before);
  return before;
}

}  // namespace stand_in

inline unsigned long long fetch_add(unsigned long long* at, unsigned long long value) {
  return stand_in::change(at, [=](unsigned long long before) { return before + value; });
}
inline unsigned fetch_add(unsigned* at, unsigned value) {
  return stand_in::change(at, [=](unsigned before) { return before + value; });
}
inline void add(unsigned long long* at, unsigned long long value) { fetch_add(at, value); }
inline void raise(unsigned long long* at, unsigned long long value) {
  stand_in::change(at, [=](unsigned long long before) { return before < value ? value : before; });
}
inline unsigned fetch_or(unsigned* at, unsigned bits) {
  return stand_in::change(at, [=](unsigned before) { return before | bits; });
}
inline unsigned exchange(unsigned* at, unsigned value) {
  return stand_in::change(at, [=](unsigned) { return value; });
}
inline unsigned long long replace_if(unsigned long long* at, unsigned long long expected, unsigned long long value) {
  return stand_in::change(at, [=](unsigned long long before) { return before == expected ? value : before; });
}

}  // namespace leadline::device
