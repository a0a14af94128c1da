// What the backend hands over: rows of fixed size in rings of fixed size. Python reads them as NumPy records.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "base/spin_lock.h"

namespace leadline::sanitizer {

inline constexpr std::size_t kPageSizes = 4;

struct LaunchRow {
  std::int64_t launch;
  std::int64_t time_ns;
  std::uint64_t place;
  std::uint64_t blocks;
  std::uint32_t threads;  // of a block
  std::uint32_t name;     // number in KnownCode::name()
  std::uint32_t thread;
  std::int32_t device;
};
static_assert(sizeof(LaunchRow) == 48);

struct TouchedRow {
  std::int64_t launch;
  std::int64_t time_ns;
  std::uint64_t place;
  std::uint64_t first;  // offsets in the object
  std::uint64_t end;
  std::uint64_t reads;
  std::uint64_t writes;
  std::uint64_t atomics;
  std::uint64_t read_bytes;
  std::uint64_t written_bytes;
  std::uint64_t atomic_bytes;
  std::uint64_t nan;
  std::uint64_t inf;
  std::uint64_t counted;
  std::uint64_t pages[kPageSizes];
  std::uint32_t object;
  std::uint32_t unused;
};
static_assert(sizeof(TouchedRow) == 152);

struct InstructionRow {
  std::int64_t launch;
  std::uint64_t place;
  std::uint64_t pc;  // offset in the function
  std::uint64_t warps;
  std::uint64_t threads;
  std::uint64_t split;
  std::uint64_t conflicts;
  std::uint64_t bytes;
  std::uint64_t meetings;  // of barriers: times that all threads came
  std::uint64_t waited;    // cycles from the first to the last, of all of them
  std::uint32_t name;      // of the kernel
  std::uint32_t point;
};
static_assert(sizeof(InstructionRow) == 88);

// A block that a measured launch has ended with.
struct DoneRow {
  std::int64_t launch;
  std::uint64_t threads;  // that ended
};
static_assert(sizeof(DoneRow) == 16);

template <class Row>
class RowQueue {
 public:
  explicit RowQueue(std::size_t room) { rows_.reserve(room); }
  // False where nobody has fetched what is there.
  bool put(const Row& row) noexcept {
    const std::lock_guard lock(lock_);
    if (rows_.size() == rows_.capacity()) return false;
    rows_.push_back(row);
    return true;
  }
  std::size_t take(Row* to, std::size_t room) noexcept {
    const std::lock_guard lock(lock_);
    const std::size_t count = std::min(room, rows_.size());
    std::copy_n(rows_.begin(), count, to);
    rows_.erase(rows_.begin(), rows_.begin() + static_cast<std::ptrdiff_t>(count));
    return count;
  }
  std::size_t waiting() noexcept {
    const std::lock_guard lock(lock_);
    return rows_.size();
  }

 private:
  SpinLock lock_;
  std::vector<Row> rows_;
};

}  // namespace leadline::sanitizer
