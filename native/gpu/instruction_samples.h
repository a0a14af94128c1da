// Samples of a device's program counter, from whoever takes them, to the places whose kernels they were of.
//
// A vendor says of a sample either which launch it is of, or only which function ran: then the kernels of that name
// that ran while samples were taken share them, by the time that each ran then. Samples wait until the records of these
// kernels have come. The part that takes samples and the part that folds records are two threads; both take one lock,
// a launch takes none.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "gpu/kernel_names.h"
#include "leadline/monitor.h"

namespace leadline::gpu {

// Samples of one instruction for one reason.
struct InstructionSample {
  std::uint32_t function = 0;     // row in SampleBatch::functions
  std::uint32_t correlation = 0;  // the launch; 0: not told
  std::uint64_t code = 0;         // which code object, see CodeObjects
  std::uint64_t offset = 0;       // in the function
  const char* stall = nullptr;    // why it was not issued, by schema/leadline.toml; lives as long as the process
  std::uint64_t count = 0;
  std::uint64_t latency = 0;  // those in which the scheduler issued nothing else either
};

// What was taken on one device in one stretch of time.
struct SampleBatch {
  std::int32_t device = -1;
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::vector<std::string> functions;  // mangled names
  std::vector<std::string> kernels;    // whose code each is part of, where it is not one itself; else empty
  std::vector<InstructionSample> samples;
};

// A kernel that has run, and where it stands in the tree.
struct KernelRun {
  leadline_context context = 0;
  leadline_context via = 0;
  std::uint8_t via_kind = 0;
  std::int32_t device = -1;
  std::int64_t stream = -1;
  std::uint64_t graph_node = 0;
  std::uint32_t correlation = 0;
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::uint32_t call = 0;  // the program's, whose id may be another than the record's
};

struct SampleCounters {
  std::uint64_t samples = 0;
  std::uint64_t by_launch = 0;  // told by the vendor which launch they are of
  std::uint64_t by_window = 0;  // shared by the kernels that ran then
  std::uint64_t unattributed = 0;
};

class InstructionSamples {
 public:
  static constexpr std::size_t kMostRuns = 1u << 16;  // kept for windows that are not settled
  static constexpr std::size_t kMostNames = 1u << 14;

  // The part that takes samples: from now on kernels are remembered; until a batch has told when it ended.
  void window_opens(std::int32_t device, std::int64_t start_ns);
  void give(SampleBatch&& batch);
  // The window brought nothing and ends.
  void window_closes(std::int32_t device, std::int64_t end_ns);

  // The part that folds: `mangled` as its record says.
  void ran(const KernelRun& run, const char* mangled);
  // Tells every sample of a window that ended before `until_ns`, kernel by kernel.
  using Tell = std::function<void(const KernelRun& run, const std::string& mangled,
                                  const std::vector<leadline_activity_child>& instructions)>;
  void settle(std::int64_t until_ns, const Tell& tell);
  // By how much longer kernels took since the last call because they ran inside windows, as far as the same kernels ran
  // outside too.
  std::int64_t take_slowdown_ns();

  SampleCounters counters() const;

 private:
  struct Window {
    std::int32_t device = -1;
    std::int64_t start_ns = 0;
    std::int64_t end_ns = INT64_MAX;  // still open
  };
  struct Kept {
    KernelRun run;
    const std::string* name = nullptr;
  };
  // How long runs of one kernel take; older ones weigh less.
  struct Rate {
    double inside_ns = 0, inside = 0, outside_ns = 0, outside = 0;
  };

  std::int64_t inside_windows_ns(const KernelRun& run) const;
  void measure(const std::string& name, std::int64_t duration_ns, std::int64_t inside_ns);
  void tell_batch(const SampleBatch& batch, const Tell& tell);
  const std::string* name_of(const char* mangled);

  mutable std::mutex mutex_;
  std::deque<Window> windows_;
  std::deque<SampleBatch> batches_;
  std::deque<Kept> runs_;
  std::unordered_set<std::string, StringHash, std::equal_to<>> names_;  // its elements stay where they are
  std::unordered_map<const std::string*, Rate> rates_;
  double slowdown_ns_ = 0;
  SampleCounters counters_;
};

}  // namespace leadline::gpu
