// Counters of threads (page faults, cycles, cache misses...), read where CPU samples are taken: what was counted since
// the sample before belongs to where the thread stands now.
//
// A plan is made before sampling begins and never changes after. A reading is words that a signal handler may write
// down; what they mean is found out by who books it.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "providers/cpu/counter_kinds.h"
#include "providers/cpu/named_events.h"
#include "providers/cpu/perf_file.h"

namespace leadline::cpu {

inline constexpr size_t kMostCounters = 16;
inline constexpr size_t kMostNamed = 4;  // by the names of events: metrics named_counter_1 and so on
inline constexpr size_t kUsageWords = 3;
inline constexpr size_t kGroupWords = 2;  // time enabled and time running, before the values
inline constexpr size_t kMostCounterWords = kUsageWords + kMostCounters * (1 + kGroupWords);
using CounterWords = std::array<uint64_t, kMostCounterWords>;

struct PlannedCounter {
  std::string name;  // as it was asked for, or of its kind
  MetricKind metric{};
  CounterSource source{};
  EventCode event;
  bool always = false;     // see CounterKind
  bool user_only = false;  // the kernel's part may not be counted
};

class CounterPlan {
 public:
  // Of these names (ours, or events of the processor, see event_named()) what this machine can count. A sentence for
  // each that it cannot, also where it could only read zero.
  std::vector<std::string> make(const std::vector<std::string>& names);

  const std::vector<PlannedCounter>& counters() const noexcept { return counters_; }
  // Counters of the kernel's and the processor's by groups that are on the processor together; places in counters().
  const std::vector<std::vector<size_t>>& groups() const noexcept { return groups_; }
  bool uses_usage() const noexcept { return uses_usage_; }
  size_t words() const noexcept { return words_; }  // of a reading
  // What a reader of the numbers has to know; empty where nothing.
  std::string caution() const;

 private:
  void arrange();

  std::vector<PlannedCounter> counters_;
  std::vector<std::vector<size_t>> groups_;
  bool uses_usage_ = false;
  size_t words_ = 0;
};

// The files that the kernel counts one thread in.
class CounterFiles {
 public:
  // Counts from now on. False where the kernel refuses one; the others are open.
  bool open(const CounterPlan& plan, pid_t tid) noexcept;
  void close() noexcept;
  // Any thread, also when the counted one has ended; signal-safe. Words of a group that cannot be read stay as they
  // are.
  void read(const CounterPlan& plan, uint64_t* words) const noexcept;

 private:
  std::array<PerfFile, kMostCounters> files_{};  // by counter
};

// The calling thread's; signal-safe.
Usage own_usage() noexcept;
// Less page faults that are not the program's.
constexpr Usage without(Usage usage, uint64_t minor, uint64_t major) noexcept {
  usage.minor_faults -= minor < usage.minor_faults ? minor : usage.minor_faults;
  usage.major_faults -= major < usage.major_faults ? major : usage.major_faults;
  return usage;
}
// Of any thread that lives; false where the kernel does not say.
bool usage_of(pid_t tid, Usage* out) noexcept;
void put_usage(const CounterPlan& plan, const Usage& usage, uint64_t* words) noexcept;

// What was counted since the reading before, scaled up where the processor counted a part of the time only.
class CounterBooks {
 public:
  // From here on; nothing of before is booked.
  void begin(const CounterWords& words) noexcept { last_ = words; }
  // Adds to `counts`, one for each counter.
  void take(const CounterPlan& plan, const uint64_t* words, int64_t* counts) noexcept;
  // Whether some of it was scaled.
  bool scaled() const noexcept { return scaled_; }

 private:
  CounterWords last_{};
  bool scaled_ = false;
};

}  // namespace leadline::cpu
