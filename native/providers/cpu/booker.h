// Turns samples into values in the tree: the Python frames of a sample become the path that the thread's own events
// would make, below the innermost scope that was open on it.
//
// Any thread may book, one at a time. A code object that is about to die while samples wait calls book_waiting() first.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/safe_pages.h"
#include "providers/cpu/functions.h"
#include "providers/cpu/images.h"
#include "providers/cpu/sampled_thread.h"
#include "providers/cpu/waiting.h"

namespace leadline::cpu {

class Booker {
 public:
  // `python`: reads the frames of samples; nullptr: they have none.
  void set_python(const PythonSamples* samples) noexcept { samples_ = samples; }

  // Native frames of the interpreter itself (`interpreter`: an address in it) are shown, or left out.
  void set_native(bool all, uintptr_t interpreter) noexcept {
    all_native_ = all;
    interpreter_ = interpreter;
  }

  // All samples of a thread that wait. Raises nothing.
  void book(SampledThread& thread) noexcept;
  // CPU time that no sample holds, where the thread was last seen.
  void book_rest(SampledThread& thread, int64_t weight_ns) noexcept;
  // What was counted up to a reading, for the next booking.
  static void count(SampledThread& thread, const uint64_t* words) noexcept;
  // CPU time of a thread whose signals do not arrive.
  void book_unseen(SampledThread& thread, int64_t weight_ns) noexcept;

  // What a thread that is not the caller waits for and where; 0 with Wait::kRunning where it does not, or did not stand
  // still while it was looked at.
  leadline_context waiting_at(SampledThread& thread, Wait* what) noexcept;
  // The frame below a place that says what is waited for.
  leadline_context wait_place(leadline_context below, Wait what) noexcept;
  static void book_wait(leadline_context place, int64_t ns) noexcept;

  std::mutex& lock() const noexcept { return lock_; }
  // Of a session that is over.
  void forget_places() noexcept {
    native_places_.clear();
    functions_.forget();
    in_api_.clear();
  }
  // Samples whose native frames were not all known; those whose way through code without unwind information was found.
  uint64_t gaps() const noexcept { return gaps_; }
  uint64_t crossed() const noexcept { return crossed_; }
  uint64_t booked() const noexcept { return booked_.load(std::memory_order_relaxed); }

  // CPU time that was booked since then, of all threads.
  void begin_sum() noexcept { sum_ns_ = 0; }
  int64_t sum_ns() const noexcept { return sum_ns_; }

 private:
  struct Level {
    leadline_context place;
    uintptr_t anchor;
    uintptr_t token;
  };
  // Where a sample is booked: below `place`, from these entries and native frames on.
  struct Base {
    leadline_context place = 0;
    size_t first_entry = 0;
    bool below_module = false;
    uintptr_t token = 0;  // native frames that end beyond it lie outside
  };
  // A piece of a joined path, root first: a Python frame by its level, or a native frame.
  struct Piece {
    bool is_native;
    size_t at;
  };
  static constexpr size_t kGap = ~size_t{0};  // of a native piece: the frames here are not known
  using NativePlaces = std::unordered_map<SampledThread::At, leadline_context, SampledThread::AtHash>;
  void read(const std::vector<uint64_t>& words, SampleHead* head);
  void book(SampledThread& thread, const std::vector<uint64_t>& words);
  void drop_strangers();
  leadline_context place_of(SampledThread& thread);
  bool capture_other(SampledThread& thread, Wait* what);
  bool in_api(leadline_context place);
  Base base_of(SampledThread& thread);
  void cross_gap(uintptr_t anchor);
  void weave();
  leadline_context add_entries(SampledThread& thread, leadline_context place, size_t from, size_t to, bool* in_module);
  leadline_context add_native(leadline_context below, const unwind::NativeFrame& frame, const Image* image,
                              bool is_leaf);
  leadline_context add_gap(leadline_context below);
  bool is_interpreter(const Image* image) const noexcept;
  static bool is_own(const Image* image) noexcept;
  bool is_beginning(const Image* image);
  bool is_observing(const Image* image, uintptr_t at);
  leadline_context add_own(SampledThread& thread, leadline_context below);
  leadline_context child(SampledThread& thread, leadline_context below, PathFrameId frame);
  static leadline_context place_at(leadline_context below, const leadline_path_frame& frame);
  bool add(SampledThread& thread, leadline_context place, int64_t weight_ns) noexcept;
  CallPath& path_of(SampledThread& thread);

  mutable std::mutex lock_;
  const PythonSamples* samples_ = nullptr;
  std::vector<uint64_t> words_;
  std::vector<Level> levels_;
  std::vector<RawFrame> frames_;
  std::vector<SampledSelf> selves_;
  std::vector<SampledRun> runs_;
  std::vector<unwind::NativeFrame> native_;
  std::vector<uint64_t> counted_;
  std::vector<uint64_t> stack_;  // from the last native frame on, where that has no unwind information
  uintptr_t gap_bp_ = 0;
  std::vector<Piece> woven_;
  unwind::End end_ = unwind::End::kFull;
  Images images_;
  Functions functions_;
  NativePlaces native_places_;
  std::unordered_map<leadline_context, bool> in_api_;
  SafePages pages_;
  bool measuring_ = false;  // the sample that is being booked fell into what measuring costs
  uint64_t gaps_ = 0;
  uint64_t crossed_ = 0;
  bool all_native_ = false;
  uintptr_t interpreter_ = 0;
  std::unordered_set<uintptr_t> good_codes_;
  uint64_t freed_ = 0;
  std::atomic<uint64_t> booked_{0};
  int64_t sum_ns_ = 0;
};

}  // namespace leadline::cpu
