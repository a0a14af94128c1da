// What a thread's steps took, from border to border: sums over consecutive steps, a histogram, and the slowest ones.
//
// Bounded whatever the number of steps: when the rows of consecutive steps are full, neighbours become one, so that
// all rows hold equally many (the last may hold fewer) and the first, middle and last third of a run stay apart.
// One thread writes; any thread may read at the same time. Nothing locks or allocates.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace leadline {

// Sums over steps, in the order of the columns of the table `steps`. Counters of the kernel: below 0 where not known.
struct StepSums {
  std::int64_t first = 0;
  std::int64_t count = 0;
  std::int64_t wall_ns = 0;
  std::int64_t wall_min_ns = std::numeric_limits<std::int64_t>::max();
  std::int64_t wall_max_ns = 0;
  std::int64_t counted = 0;
  std::int64_t running_ns = 0;
  std::int64_t core_wait_ns = 0;
  std::int64_t preemptions = 0;
  std::int64_t major_faults = 0;
  std::int64_t operators = 0;
  std::int64_t operator_ns = 0;
  std::int64_t backward_ns = 0;
  std::int64_t data_ns = 0;
  std::int64_t optimizer_ns = 0;
  std::int64_t compile_ns = 0;
  std::int64_t collection_ns = 0;
  std::int64_t saving_ns = 0;
  std::int64_t device_wait_ns = 0;

  // Those of one step.
  static StepSums one(std::int64_t number, std::int64_t wall_ns) noexcept {
    StepSums step;
    step.first = number;
    step.count = 1;
    step.wall_ns = step.wall_min_ns = step.wall_max_ns = wall_ns;
    return step;
  }
  // Calls f(mine, theirs) for every column that adds up and is always known.
  template <class F>
  static void for_each_sum(StepSums& mine, const StepSums& theirs, F&& f) {
    f(mine.count, theirs.count);
    f(mine.wall_ns, theirs.wall_ns);
    f(mine.operators, theirs.operators);
    f(mine.operator_ns, theirs.operator_ns);
    f(mine.backward_ns, theirs.backward_ns);
    f(mine.data_ns, theirs.data_ns);
    f(mine.optimizer_ns, theirs.optimizer_ns);
    f(mine.compile_ns, theirs.compile_ns);
    f(mine.collection_ns, theirs.collection_ns);
    f(mine.saving_ns, theirs.saving_ns);
    f(mine.device_wait_ns, theirs.device_wait_ns);
  }
  void add(const StepSums& later) noexcept {
    for_each_sum(*this, later, [](std::int64_t& mine, std::int64_t theirs) { mine += theirs; });
    wall_min_ns = later.wall_min_ns < wall_min_ns ? later.wall_min_ns : wall_min_ns;
    wall_max_ns = later.wall_max_ns > wall_max_ns ? later.wall_max_ns : wall_max_ns;
    const bool both = counted > 0 && later.counted > 0;
    const auto known = [&](std::int64_t& mine, std::int64_t theirs) {
      if (later.counted == 0) return;
      mine = both ? (mine < 0 || theirs < 0 ? -1 : mine + theirs) : theirs;
    };
    known(running_ns, later.running_ns);
    known(core_wait_ns, later.core_wait_ns);
    known(preemptions, later.preemptions);
    known(major_faults, later.major_faults);
    counted += later.counted;
  }
};

// 16 bins an octave: bin b begins at (16 + b % 16) << (b / 16) nanoseconds.
inline constexpr std::size_t kStepBins = 16 * 40;
constexpr std::size_t step_bin(std::int64_t wall_ns) noexcept {
  const std::uint64_t value = wall_ns < 16 ? 16 : static_cast<std::uint64_t>(wall_ns);
  const auto octave = static_cast<std::size_t>(std::bit_width(value)) - 5;
  const std::size_t bin = octave * 16 + static_cast<std::size_t>((value >> octave) - 16);
  return bin < kStepBins ? bin : kStepBins - 1;
}

class StepTable {
 public:
  static constexpr std::size_t kSpans = 12;
  static constexpr std::size_t kSlowest = 8;

  struct Rows {
    std::array<StepSums, kSpans> spans;
    std::size_t span_count = 0;
    std::array<StepSums, kSlowest> slowest;
    std::size_t slowest_count = 0;
    std::array<std::uint32_t, kStepBins> histogram{};
  };

  // The owning thread only.
  void add(const StepSums& step) noexcept {
    version_.store(version_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    add_to_spans(step);
    add_to_slowest(step);
    std::atomic<std::uint32_t>& bin = histogram_[step_bin(step.wall_ns)];
    bin.store(bin.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    version_.store(version_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
  bool empty() const noexcept { return version_.load(std::memory_order_relaxed) < 2; }
  // Whole, of one moment; false where the thread wrote each time.
  bool read(Rows& rows) const noexcept {
    for (int i = 0; i < 1000; ++i) {
      const std::uint64_t before = version_.load(std::memory_order_acquire);
      if (before % 2 != 0) continue;
      copy(rows);
      if (version_.load(std::memory_order_relaxed) == before) return true;
    }
    return false;
  }

 private:
  static constexpr std::size_t kWords = sizeof(StepSums) / sizeof(std::int64_t);
  static_assert(kWords * sizeof(std::int64_t) == sizeof(StepSums));
  using Words = std::array<std::int64_t, kWords>;

  // Written with release and read with acquire: whoever sees a part of a step sees that its version is odd.
  class Row {
   public:
    StepSums load() const noexcept {
      Words words;
      for (std::size_t i = 0; i < kWords; ++i) words[i] = words_[i].load(std::memory_order_acquire);
      return std::bit_cast<StepSums>(words);
    }
    void store(const StepSums& sums) noexcept {
      const auto words = std::bit_cast<Words>(sums);
      for (std::size_t i = 0; i < kWords; ++i) words_[i].store(words[i], std::memory_order_release);
    }

   private:
    std::array<std::atomic<std::int64_t>, kWords> words_{};
  };

  void add_to_spans(const StepSums& step) noexcept {
    std::size_t count = span_count_.load(std::memory_order_relaxed);
    if (count > 0) {
      StepSums last = spans_[count - 1].load();
      if (last.count < size_) {
        last.add(step);
        spans_[count - 1].store(last);
        return;
      }
    }
    if (count == kSpans) {
      for (std::size_t i = 0; i < kSpans / 2; ++i) {
        StepSums both = spans_[2 * i].load();
        both.add(spans_[2 * i + 1].load());
        spans_[i].store(both);
      }
      count = kSpans / 2;
      size_ *= 2;
    }
    spans_[count].store(step);
    span_count_.store(count + 1, std::memory_order_release);
  }
  void add_to_slowest(const StepSums& step) noexcept {
    const std::size_t count = slowest_count_.load(std::memory_order_relaxed);
    if (count < kSlowest) {
      slowest_[count].store(step);
      slowest_count_.store(count + 1, std::memory_order_release);
    } else if (step.wall_ns > fastest_ns_) {
      slowest_[fastest_].store(step);
    } else {
      return;
    }
    fastest_ns_ = std::numeric_limits<std::int64_t>::max();
    for (std::size_t i = 0; i < slowest_count_.load(std::memory_order_relaxed); ++i) {
      const std::int64_t wall_ns = slowest_[i].load().wall_ns;
      if (wall_ns >= fastest_ns_) continue;
      fastest_ns_ = wall_ns;
      fastest_ = i;
    }
  }
  void copy(Rows& rows) const noexcept {
    rows.span_count = span_count_.load(std::memory_order_acquire);
    for (std::size_t i = 0; i < rows.span_count; ++i) rows.spans[i] = spans_[i].load();
    rows.slowest_count = slowest_count_.load(std::memory_order_acquire);
    for (std::size_t i = 0; i < rows.slowest_count; ++i) rows.slowest[i] = slowest_[i].load();
    for (std::size_t i = 0; i < kStepBins; ++i) rows.histogram[i] = histogram_[i].load(std::memory_order_acquire);
  }

  std::atomic<std::uint64_t> version_{0};
  std::array<Row, kSpans> spans_;
  std::atomic<std::size_t> span_count_{0};
  std::array<Row, kSlowest> slowest_;
  std::atomic<std::size_t> slowest_count_{0};
  std::array<std::atomic<std::uint32_t>, kStepBins> histogram_{};
  // The owning thread's own:
  std::int64_t size_ = 1;  // steps in each full row
  std::int64_t fastest_ns_ = 0;
  std::size_t fastest_ = 0;  // of the slowest
};

}  // namespace leadline
