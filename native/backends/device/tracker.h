// What the host half of a backend and the text on the device share: the table of objects, the sums of one launch, and
// the compact result that the launch's last threads write to pinned memory.
//
// Promises: plain C++17 that g++, nvcc and NVRTC compile alike, without a header; every size and place is asserted
// here. Nothing waits: the host sets a tracker up before a launch, in the order of its stream, and polls pinned memory.
//
// The life of a tracker
//   1. The host allocates on the device: a Tracker, `Sums` and `touched` for the most ranges it will upload, page words
//      for all of them, and the `Instruction`s if it wants them; in pinned memory a Result, Rows, page words and
//      Instructions. All of it is cleared to 0 once.
//   2. Before each launch (LAUNCH_BEGIN, NODE_LAUNCH_BEGIN), in the order of the launch's stream, the host copies
//      sizeof(Setup) bytes to the Tracker's start: `setup` is all that the host writes. The ranges themselves are
//      shared by trackers and copied only where they changed, to a place that no launch under way reads. The tracker's
//      address on the device is the launch's user data.
//   3. The text sums. The threads that end last (see `threads_expected`) write Rows, page words, Instructions, then the
//      Result, then `Result::complete = setup.launch`, each after a fence for the system; and they clear whatever the
//      launch has set in the device's memory. So the tracker needs no memset between launches.
//   4. The host reads `complete` (acquire); where it equals the launch number that it waits for, all else is there. It
//      reads, and may use the tracker again. Launch numbers are above 0 and never come twice for one Result.
// A launch that dies, or whose threads do not all pass an exit that is patched, never completes: the host counts it as
// lost and clears Tracker, Sums, page words and Instructions with memset before it uses that tracker again.
// Launches that are not measured get user data 0, or a tracker with range_count, want and threads_expected 0.
#pragma once

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define LEADLINE_DEVICE __device__
#define LEADLINE_ROLLED _Pragma("unroll 1")
#else
#define LEADLINE_DEVICE
#define LEADLINE_ROLLED
#endif

namespace leadline::device {

// NVRTC has no <cstdint>, and atomics of the device want these very types.
using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;
static_assert(sizeof(u16) == 2 && sizeof(u32) == 4 && sizeof(u64) == 8 && sizeof(void*) == 8, "64-bit only");

// Of this header and of the text: an old fatbin in a cache must not meet a new host half.
constexpr u32 kVersion = 2;
constexpr u32 kNone = 0xffffffffu;
constexpr u32 kMostRanges = 1u << 16;
constexpr u32 kHints = 256;
constexpr u32 kBarriers = 8;        // of a block, by index, whose waits are followed; CUDA has 16
constexpr u32 kLeastPageShift = 7;  // no access of up to 16 bytes then touches more than two pages

// What an element of an object is, for looking at values that are stored. kOther: values are not looked at.
enum Element : u32 { kOther = 0, kFloat32 = 1, kFloat64 = 2, kFloat16 = 3, kBfloat16 = 4 };

// One object (a tensor's storage, an allocation). Sorted by `begin`, disjoint; `end` is the first address after it, and
// neighbours may touch (end == next begin). Its pages are counted from its own start: page n is (address - begin) >>
// page_shift, bit n % 32 of page word first_word + n / 32. No two ranges share a word: see words_for().
struct Range {
  u64 begin;
  u64 end;
  u32 object;      // the host's number of it; kept as it is
  u32 first_word;  // of the tracker's page words
  u32 element;     // Element
  u32 reserved;
};

// 32-bit words of page bits that a range of `bytes` needs.
LEADLINE_DEVICE constexpr u64 words_for(u64 bytes, u32 page_shift) {
  return (((bytes + (u64{1} << page_shift) - 1) >> page_shift) + 31) / 32;
}

// How an access counts: in one of these, once for each thread (the elements of a vector access are one).
enum Kind : u32 { kRead = 0, kWrite = 1, kAtomic = 2, kKinds = 3 };
constexpr u32 kSizes = 5;  // accesses of 1, 2, 4, 8 and 16 bytes

// What a launch has done in one range; the device's own, all 0 between launches. The host sees it as a Row.
struct Sums {
  u64 counts[kKinds][kSizes];
  u64 missing[kKinds];  // bytes that those sizes say too much (modulo 2^64), where an access was not of its whole size
  u64 least_inverted;   // ~ of the least offset touched, so that 0 is none
  u64 most;             // offset after the last byte touched
  u64 pages;            // distinct ones
  u64 nan;              // elements stored, by Range::element
  u64 inf;
  u64 counted;  // ll_count() of the user's text
  u32 listed;   // 1: in `touched`
  u32 reserved;
};

// Where the text is called from, and the index of Totals::points.
enum Point : u32 {
  kGlobal = 0,
  kShared = 1,
  kLocal = 2,
  kBarrier = 3,  // of a block
  kSyncwarp = 4,
  kMemcpyAsync = 5,
  kBulk = 6,            // copies and reductions between global and shared memory
  kMatrix = 7,          // of shared memory
  kClusterBarrier = 8,  // arrivals
  kTma = 9,             // tensor maps: seen, not followed: their bytes are in no range, so the host counts a loss
  kExit = 10,
  kPoints = 11,
};

struct PointCount {
  u64 warps;    // calls of the text, lanes that came together as one
  u64 threads;  // lanes in them
};

struct Totals {
  PointCount points[kPoints];  // with kWantPoints; kTma always, since it is a loss
  u64 outside;                 // accesses (threads) whose first byte is in no range
  u64 outside_bytes;           // and theirs
  u64 overrun_bytes;           // of accesses that begin in a range and reach beyond its end
  u64 prefetches;              // threads; no accesses, and nowhere else counted but in `points`
  u64 conflicts;               // of shared memory: passes beyond the first
  u64 lost_instructions;       // calls (warps) that found no room among the instructions
  u64 lost_arrivals;           // of warps at barriers whose waits could not be followed (barriers.h)
};

// One instruction, by its address; written on the device only.
struct Instruction {
  u64 pc;         // 0: free. pc - sanitizerGetFunctionPcAndSize() is its offset in the function
  u64 warps;      // times a warp executed it
  u64 threads;    // lanes of those
  u64 split;      // warps of which some lanes took part and some did not
  u64 conflicts;  // shared memory: passes beyond the first
  u64 bytes;      // of all lanes, as asked for
  u32 point;      // Point
  u32 kind;       // Kind of the first access
  u64 meetings;   // with kWantBarriers: times that all threads came to this barrier
  u64 waited;     // cycles of them, from the first to the last arrival
};

enum Want : u32 {
  kWantPages = 1,         // page bits, for Sums::pages and the words of the result
  kWantValues = 2,        // look at floats that are stored
  kWantConflicts = 4,     // of shared memory
  kWantInstructions = 8,  // needs `instructions`
  kWantPoints = 16,
  kWantRaw = 32,       // accesses as they come, for the comparison with analysis on the CPU: nothing is summed then
  kWantBarriers = 64,  // how long threads wait for each other; needs `instructions` and `blocks`
};

struct Result;
struct Row;

// One barrier of a block, from the first arrival to the last; all 0 in between.
struct Barrier {
  u64 state;           // barriers.h
  u64 first_inverted;  // ~ of the least clock of those that wait, so that 0 is none
  u64 last;            // the greatest clock
  u64 pc_and_threads;  // the instruction; the count that it asks for above bit 48, 0: all threads of the block
};

// The place of the blocks whose number modulo block_room is its index, one after the other.
struct Block {
  u64 owner;  // number of the block plus 1, with kRetired where another block came while this one was there; 0: free
  u32 ended;  // threads of it that are waited for no longer
  u32 left;   // and those of them that touch nothing here any more
  Barrier barriers[kBarriers];
};
constexpr u64 kRetired = u64{1} << 63;

// One access of one thread, for kWantRaw. A copy in bulk is one access of many bytes.
struct RawAccess {
  u64 address;
  u64 pc;
  u32 bytes;
  u32 kind;  // Kind
};

// Written by the host only, whole, before a launch. All pointers are addresses on the device.
struct Setup {
  u32 version;      // kVersion; another one: nothing is measured and nothing completes
  u32 range_count;  // 0, and want 0: nothing is measured; the launch completes where threads_expected is not 0
  u32 page_shift;   // kLeastPageShift to 31; equal for all ranges
  u32 want;         // Want, or-ed
  const Range* ranges;
  Sums* sums;            // range_count of them
  u32* touched;          // range_count of them
  u32* page_words;       // all ranges' words; may be null without kWantPages
  u64 launch;            // above 0
  u64 threads_expected;  // how many threads will pass the exit patch: grid times block, since each ends for itself. 0:
                         // nothing completes
  Instruction* instructions;  // instruction_room of them (a power of two), or null
  u32 instruction_room;
  u32 row_room;  // of what follows, in pinned memory that the device can write
  u32 word_room;
  u32 result_instruction_room;
  Result* result;
  Row* rows;
  u32* words;
  Instruction* result_instructions;
  RawAccess* raw;  // raw_room of them, or null
  u64 raw_room;
  Block* blocks;  // with kWantBarriers: block_room of them, on the device
  u64 block_room;
};

struct Tracker {
  Setup setup;
  // Written on the device only; all 0 between launches but for `hints`, which may hold anything.
  u64 threads_done;
  u32 touched_count;
  u32 retired;   // Blocks with kRetired
  u64 raw_used;  // more than raw_room: the rest was not kept
  Totals totals;
  u32 hints[kHints];  // by instruction: the range it met last
};

// ---------------------------------------------------------------- in pinned memory

// What a launch did in one range that it touched. Rows are in no order. An access belongs to the range that holds its
// first byte; what reaches beyond that range's end is no byte of it but of Totals::overrun_bytes. A copy in bulk counts
// once for each instruction.
struct Row {
  u32 object;
  u32 range;       // its index
  u32 first_page;  // of the page words that came along; a multiple of 32
  u32 word_count;  // 0 without kWantPages, or where no room was left: Sums::pages is right nevertheless
  u64 first_word;  // of Setup::words
  u64 reads;
  u64 writes;
  u64 atomics;
  u64 read_bytes;
  u64 written_bytes;
  u64 atomic_bytes;
  u64 least;  // offset of the first byte touched
  u64 most;   // offset after the last
  u64 pages;
  u64 nan;
  u64 inf;
  u64 counted;
};

struct Result {
  u64 complete;  // written last: the launch that all of this is about
  u64 threads;   // that passed the exit
  u32 rows;
  u32 lost_rows;  // touched, but no room: the host counts them
  u32 words;
  u32 lost_words;  // rows whose page words found no room
  u32 instructions;
  u32 lost_instructions;
  u64 raw;  // accesses that kWantRaw has met; those beyond raw_room are lost
  Totals totals;
};

static_assert(sizeof(Range) == 32, "");
static_assert(sizeof(Sums) == 200, "");
static_assert(sizeof(Totals) == 16 * kPoints + 56, "");
static_assert(sizeof(Instruction) == 72, "");
static_assert(sizeof(Block) == 16 + 32 * kBarriers, "");
static_assert(sizeof(RawAccess) == 24, "");
static_assert(sizeof(Setup) == 152, "");
static_assert(sizeof(Tracker) == sizeof(Setup) + 24 + sizeof(Totals) + 4 * kHints, "");
static_assert(sizeof(Row) == 120, "");
static_assert(sizeof(Result) == 48 + sizeof(Totals), "");

}  // namespace leadline::device

// The functions that a compiled text has, `extern "C"`, and the vendor's number of the point that each is for. Copies
// in bulk are there from CUDA 12, loads by tensor maps from 13.3 (their stores have no declared form: they are never
// seen). Point 14 has two: up to 13.4 the vendor gives five arguments, so that bytes filled with 0 count as read, and
// from 13.5 (a library that has sanitizerIsInsideRecursiveCallback) six, for leadline_memcpy_async_filled.
#define LEADLINE_DEVICE_PATCHES(patch)                                                                           \
  patch(leadline_exit, 2) patch(leadline_global, 3) patch(leadline_shared, 4) patch(leadline_local, 5)           \
      patch(leadline_barrier, 6) patch(leadline_syncwarp, 7) patch(leadline_memcpy_async, 14)                    \
          patch(leadline_memcpy_async_filled, 14) patch(leadline_matrix, 19) patch(leadline_cluster_barrier, 21) \
              patch(leadline_bulk_load, 30) patch(leadline_bulk_store, 35) patch(leadline_bulk_reduce, 37)       \
                  patch(leadline_tma_load, 43)
