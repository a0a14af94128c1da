// One measured quantity at one node: count, sum, min, max and sum of squares.
//
// Written by one thread, read by any: plain loads and stores of relaxed atomics, no read-modify-write. A reader that
// comes in the middle of an add() may see the new count with the old sum; every later read corrects it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>

#include "base/ids.h"

namespace leadline {

// Call time and CPU time of a scope with nothing inside, where the two are equal: one addition instead of two. Threads'
// trees only; a merged tree holds the two.
inline constexpr MetricKind kLeafTime{0xff};

// What is measured: one accumulator per node and key.
struct MetricKey {
  MetricKind metric;
  std::int16_t device = kCpuDevice;  // row of the device table
  std::int32_t stream = kNoStream;

  constexpr std::uint64_t packed() const noexcept {
    return std::uint64_t{static_cast<std::uint8_t>(metric)} << 48 |
           std::uint64_t{static_cast<std::uint16_t>(device)} << 32 | static_cast<std::uint32_t>(stream);
  }
  static constexpr MetricKey unpack(std::uint64_t packed) noexcept {
    return {static_cast<MetricKind>(packed >> 48), static_cast<std::int16_t>(packed >> 32),
            static_cast<std::int32_t>(packed)};
  }
};

// The values of an accumulator; units are the metric's, sum_squares its square. Merging is exact, in any order (up to
// the rounding of sum_squares), and empty values change nothing.
struct MetricValues {
  std::uint64_t count = 0;
  std::int64_t sum = 0;
  std::int64_t min = std::numeric_limits<std::int64_t>::max();
  std::int64_t max = std::numeric_limits<std::int64_t>::min();
  double sum_squares = 0;

  static constexpr MetricValues of(std::int64_t value) noexcept {
    return {1, value, value, value, static_cast<double>(value) * static_cast<double>(value)};
  }
  constexpr void merge(const MetricValues& other) noexcept {
    count += other.count;
    sum += other.sum;
    min = std::min(min, other.min);
    max = std::max(max, other.max);
    sum_squares += other.sum_squares;
  }
};

// A cache line of its own: between two operators the program has often used up the caches.
class alignas(64) Accumulator {
 public:
  explicit Accumulator(std::uint64_t packed_key) noexcept : key_(packed_key) {}

  // Writer only, in the first one of a node: how many the node has.
  std::uint32_t chain_length = 1;

  std::uint64_t packed_key() const noexcept { return key_; }
  const Accumulator* next() const noexcept { return next_.load(std::memory_order_acquire); }

  // Writer only.
  Accumulator* next() noexcept { return next_.load(std::memory_order_relaxed); }
  void set_next(Accumulator* next) noexcept { next_.store(next, std::memory_order_release); }

  void add(std::int64_t value) noexcept {
    constexpr auto relaxed = std::memory_order_relaxed;
    count_.store(count_.load(relaxed) + 1, relaxed);
    sum_.store(sum_.load(relaxed) + value, relaxed);
    if (value < min_.load(relaxed)) min_.store(value, relaxed);
    if (value > max_.load(relaxed)) max_.store(value, relaxed);
    const auto real = static_cast<double>(value);
    sum_squares_.store(sum_squares_.load(relaxed) + real * real, relaxed);
  }

  void merge(const MetricValues& other) noexcept {
    constexpr auto relaxed = std::memory_order_relaxed;
    MetricValues values = this->values();
    values.merge(other);
    count_.store(values.count, relaxed);
    sum_.store(values.sum, relaxed);
    min_.store(values.min, relaxed);
    max_.store(values.max, relaxed);
    sum_squares_.store(values.sum_squares, relaxed);
  }

  // As if nothing had been added.
  void reset() noexcept {
    constexpr auto relaxed = std::memory_order_relaxed;
    const MetricValues none;
    count_.store(none.count, relaxed);
    sum_.store(none.sum, relaxed);
    min_.store(none.min, relaxed);
    max_.store(none.max, relaxed);
    sum_squares_.store(none.sum_squares, relaxed);
  }

  // Any thread.
  MetricValues values() const noexcept {
    constexpr auto relaxed = std::memory_order_relaxed;
    return {count_.load(relaxed), sum_.load(relaxed), min_.load(relaxed), max_.load(relaxed),
            sum_squares_.load(relaxed)};
  }

 private:
  std::uint64_t key_;
  std::atomic<Accumulator*> next_{nullptr};
  std::atomic<std::uint64_t> count_{0};
  std::atomic<std::int64_t> sum_{0};
  std::atomic<std::int64_t> min_{std::numeric_limits<std::int64_t>::max()};
  std::atomic<std::int64_t> max_{std::numeric_limits<std::int64_t>::min()};
  std::atomic<double> sum_squares_{0};
};

}  // namespace leadline
