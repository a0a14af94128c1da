// Scratch memory that a driver takes for a hardware queue while a kernel waits for it, and takes back: to the kernels
// that needed it.
//
// Records of it name the queue and no launch. The kernel that asked is the next one of that queue that uses scratch and
// ends later, so what was taken waits until that kernel's record has come; what is given back stands where it was
// taken. Runs on the thread that folds; memory is bounded by constants and by the number of distinct kernels.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "gpu/instruction_samples.h"

namespace leadline::gpu {

struct ScratchChange {
  enum class Kind : std::uint8_t { kTaken, kGivenBack, kReclaimed };  // reclaimed: from a queue that was idle
  Kind kind = Kind::kTaken;
  std::uint64_t queue = 0;
  std::int32_t device = -1;
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::int64_t bytes = 0;  // 0: not told
};

struct ScratchCounters {
  std::uint64_t changes = 0;
  std::uint64_t unattributed = 0;
  std::uint64_t dropped = 0;
};

class ScratchMemory {
 public:
  static constexpr std::size_t kMostChanges = 1024;  // that wait for their kernel
  static constexpr std::size_t kMostRuns = 256;      // of kernels with scratch, whose change may come after them
  static constexpr std::size_t kMostQueues = 1024;

  void changed(const ScratchChange& change) noexcept;
  // A kernel that uses scratch.
  void ran(const KernelRun& run, const char* mangled, std::uint64_t queue) noexcept;
  void pause(std::int64_t time_ns) noexcept { paused_ = {time_ns, INT64_MAX}; }
  void resume(std::int64_t time_ns) noexcept { paused_.until_ns = time_ns; }

  // Tells what began before `until_ns`, with its kernel or, where none is known, null twice.
  using Tell = std::function<void(const ScratchChange& change, const KernelRun* run, const std::string* mangled)>;
  void settle(std::int64_t until_ns, const Tell& tell) noexcept;
  // No more records come.
  void finish(const Tell& tell) noexcept;

  const ScratchCounters& counters() const noexcept { return counters_; }

 private:
  struct Kept {
    KernelRun run;
    const std::string* name = nullptr;  // null: none
    std::uint64_t queue = 0;
  };
  struct Waiting {
    ScratchChange change;
    Kept kernel;
  };
  struct Holder {
    Kept kernel;
    std::int64_t bytes = 0;
  };
  struct Stretch {
    std::int64_t from_ns = INT64_MAX;
    std::int64_t until_ns = INT64_MAX;
  };

  static void offer(Waiting& waiting, const Kept& kept) noexcept;
  void tell_one(Waiting& waiting, const Tell& tell);

  std::deque<Waiting> waiting_;
  std::array<Kept, kMostRuns> runs_;
  std::size_t next_run_ = 0;
  std::unordered_map<std::uint64_t, Holder> holders_;                   // by queue
  std::unordered_set<std::string, StringHash, std::equal_to<>> names_;  // its elements stay where they are
  Stretch paused_;
  ScratchCounters counters_;
};

}  // namespace leadline::gpu
