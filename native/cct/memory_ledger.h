// Which call path owns which live memory, and who owned it when each device's total peaked.
//
// A peak costs O(1): it only advances the device's epoch. A node's share at the peak is saved when its live bytes
// change for the first time in a newer epoch; until then its live bytes are its share.
//
// Never waits: when another thread holds the ledger the event goes into a bounded queue, in order, and whoever holds
// the ledger next books it. A full queue counts memory_events_dropped; freeing an unknown address counts free_unknown.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/ids.h"
#include "base/losses.h"
#include "base/spin_lock.h"
#include "cct/accumulator.h"
#include "cct/live_ranges.h"

namespace leadline {

// What a node had allocated that was alive at the device's peak.
struct PeakShare {
  std::int16_t device;
  ThreadIndex thread;
  NodeId node;
  std::int64_t bytes;
};

// Memory freed that only the ledger can book: where it was allocated, or at a node when its size was known later.
struct FreedLater {
  std::int16_t device;
  ThreadIndex thread;
  NodeId node;
  MetricValues bytes;
};

struct DeviceLive {
  std::int16_t device;
  std::int64_t live_bytes;
  std::int64_t peak_bytes;
};

class MemoryLedger {
 public:
  static constexpr std::int64_t kUnknownBytes = -1;
  static constexpr std::int64_t kLater = -2;
  static constexpr std::int64_t kUnmeasured = -3;
  static constexpr std::uint32_t kQueueEvents = 4096;
  static constexpr int kPatience = 64;

  // Throws std::bad_alloc.
  explicit MemoryLedger(LossCounters& losses = leadline::losses());
  ~MemoryLedger();
  MemoryLedger(const MemoryLedger&) = delete;
  MemoryLedger& operator=(const MemoryLedger&) = delete;

  // `bytes` at `address` now belong to (thread, node). An address that was live is taken as freed unseen. Any thread.
  void allocate(std::uint64_t address, std::int64_t bytes, std::int16_t device, ThreadIndex thread,
                NodeId node) noexcept;

  // The address is free. Returns its bytes, kUnknownBytes when it was not known (a loss), or kLater when it could not
  // be booked at once. What is booked later goes to freed_later() for (thread, node), unless that is nobody. Any
  // thread.
  std::int64_t release(std::uint64_t address, std::int16_t device = kCpuDevice, ThreadIndex thread = kNoThread,
                       NodeId node = kNoNode) noexcept;

  // As release(), for who does not know where the program is: what is freed goes to freed_later() at the place that
  // allocated it.
  std::int64_t release_at_owner(std::uint64_t address) noexcept;

  // As both, while measuring is paused. What is allocated is nobody's, and freeing it later returns kUnmeasured; what
  // is freed goes to freed_later() at the place that allocated it.
  void allocate_unmeasured(std::uint64_t address) noexcept;
  void release_unmeasured(std::uint64_t address) noexcept;

  // For the writer, which may wait: everything alive at the peak of its device, nodes without a share left out.
  std::vector<PeakShare> peak_shares();
  std::vector<FreedLater> freed_later();
  std::vector<DeviceLive> devices();

  // Everything alive now, by address, for those who may wait. Throws std::bad_alloc.
  LiveRanges live_ranges();
  // Grows with every block that comes or goes; as long as it stands still, live_ranges() are the same. Any thread.
  std::uint64_t changes() const noexcept { return changes_.load(std::memory_order_relaxed); }

  // For the writer and tests: blocks alive now.
  std::size_t live_blocks();

  // Books for those who may wait: while it exists nobody else books, and what comes is queued.
  class Hold {
   public:
    explicit Hold(MemoryLedger& ledger) noexcept;
    ~Hold();
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    MemoryLedger& ledger_;
  };

  std::size_t held_bytes() const noexcept;

  // For a fork child and a new session: forgets everything; no other thread may use the ledger meanwhile.
  void clear() noexcept;

 private:
  struct Books;  // the maps, touched only by the holder
  struct Event;
  class Queue;

  [[gnu::hot]] std::int64_t submit(const Event& event) noexcept;
  [[gnu::hot]] std::int64_t book(const Event& event, bool later) noexcept;
  [[gnu::hot]] std::int64_t book_in_order(const Event& event) noexcept;
  bool drain() noexcept;

  LossCounters* losses_;
  std::unique_ptr<Books> books_;
  std::unique_ptr<Queue> queue_;
  SpinLock lock_;
  std::atomic<std::uint64_t> changes_{0};
};

}  // namespace leadline
