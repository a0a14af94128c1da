// What there is for one thread that is sampled: what interrupts it, what its handler writes, what is booked of it.
//
// Never freed: a signal may be on its way to a thread that has ended. Serves the next thread then.
#pragma once

#include <sys/types.h>
#include <time.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

#include "base/hash.h"
#include "base/safe_pages.h"
#include "leadline/monitor.h"
#include "providers/cpu/counters.h"
#include "providers/cpu/sample_ring.h"
#include "providers/cpu/task_clock.h"
#include "stack/call_path.h"
#include "stack/python_samples.h"
#include "unwind/walk.h"

namespace leadline::cpu {

inline constexpr size_t kMostFrames = 4096;     // of a sample; deeper stacks are cut at the root side and counted
inline constexpr size_t kMostSelves = 64;       // nn.Modules being called at a time
inline constexpr size_t kRingWords = 1u << 16;  // more than one of the largest samples

inline constexpr size_t kMostRuns = 512;     // evaluations of the interpreter, one inside the other
inline constexpr size_t kMostNative = 1024;  // native frames

// A sample as words: these, then levels (place, anchor, token), frames (frame, code, instruction), selves (frame,
// object, its class), runs (home, frames), native frames (pc, sp, cfa), a reading of the counters, the stack from the
// last native frame on where that has no unwind information.
struct SampleHead {
  uint64_t weight_ns;
  uint64_t own;  // 1: the thread was in the monitor, measuring
  uint64_t end;  // unwind::End of the native frames
  uint64_t levels;
  uint64_t frames;
  uint64_t selves;
  uint64_t runs;
  uint64_t native;
  uint64_t counters;
  uint64_t stack;
  uint64_t gap_bp;  // the frame pointer there
};
inline constexpr size_t kMostStack = 8192;  // words
inline constexpr size_t kHeadWords = sizeof(SampleHead) / sizeof(uint64_t);

// What is known of a thread's waiting; see Waits.
struct SampledWait {
  int64_t looked_ns = 0;  // when; 0: never
  int64_t ran_ns = 0;     // CPU time then
  int64_t for_core_ns = 0;
  leadline_context place = 0;  // what it waits for and where; 0: it did not wait then
  leadline_context last = 0;   // the last that it was seen in
  int64_t here_ns = 0;         // of that wait, not booked yet; less than nothing: too much was booked
  int64_t unseen_ns = 0;       // waited, and never looked at meanwhile
};

struct SampledThread {
  // A native frame below a place.
  struct At {
    leadline_context below;
    uintptr_t pc;
    friend bool operator==(const At&, const At&) = default;
  };
  struct AtHash {
    size_t operator()(const At& at) const noexcept { return hash_mix(at.below, at.pc); }
  };
  SampledThread() : ring(kRingWords) {}

  // --- both sides
  std::atomic<pid_t> tid{0};              // 0: nobody's
  std::atomic<uint32_t> taken{0};         // samples
  std::atomic<int64_t> accounted_ns{0};   // CPU time of the thread that samples hold
  std::atomic<int64_t> handlers_ns{0};    // CPU time that taking samples took
  std::atomic<int64_t> on_time_ns{0};     // its task clock interrupts it whenever it has run so long; 0: it has none
  std::atomic<int64_t> ran_at_end_ns{0};  // all that it ran, once it is over
  std::atomic<bool> over{false};          // the thread is ending
  Usage used_at_end;                      // the same, of its usage; written before `over`
  std::atomic<uint64_t> own_minor{0};     // page faults that taking samples made
  std::atomic<uint64_t> own_major{0};
  CounterFiles files;  // opened and closed while no sample is taken
  SampleRing ring;

  // --- the handler
  bool marked = false;     // asked to be told of the thread's end
  int64_t paid_at_ns = 0;  // by its CPU clock: from then on expensive samples are no more than their share of its time
  uint32_t cut = 0;        // samples in a row whose Python frames did not hang together
  SafePages pages;
  std::array<RawFrame, kMostFrames> frames;
  std::array<SampledSelf, kMostSelves> selves;
  std::array<SampledRun, kMostRuns> runs;
  std::array<unwind::NativeFrame, kMostNative> native;
  CounterWords counted;

  // --- who books, under Booker's lock
  struct Step {
    leadline_context below;
    PathFrameId frame;
    friend bool operator==(const Step&, const Step&) = default;
  };
  struct StepHash {
    size_t operator()(const Step& step) const noexcept {
      return hash_mix(step.below, static_cast<uint32_t>(step.frame));
    }
  };
  leadline_context root = 0;
  leadline_context last = 0;  // where the last sample was booked
  int64_t unbooked_ns = 0;    // could not be booked when it came
  std::array<int64_t, kMostCounters> unbooked_counts{};
  CounterBooks books;
  std::unique_ptr<CallPath> path;  // made with the first Python frame
  std::unordered_map<Step, leadline_context, StepHash> places;

  // --- the thread that looks after timers
  SampledWait wait;
  std::string name;
  clockid_t clock{};
  timer_t timer{};
  TaskClock task_clock;
  int64_t ran_ns = 0;         // its CPU time at the last listing
  uint32_t silent = 0;        // listings in a row in which it blocked the signal and no sample came
  uint32_t taken_before = 0;  // samples at the last listing
  bool has_timer = false;
  bool seen = false;  // in the present listing
  bool deaf = false;  // its signals do not arrive
};

}  // namespace leadline::cpu
