// Which call path owns which live memory, and who owned it when each device's total peaked.
//
// A peak costs O(1): it only advances the device's epoch. A node's share at the peak is saved when its live bytes
// change for the first time in a newer epoch; until then its live bytes are its share.
//
// Never waits: when another thread holds the ledger the event goes into a bounded queue, in order, and whoever holds
// the ledger next books it. A full queue counts memory_events_dropped; freeing an unknown address counts free_unknown.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/ids.h"
#include "base/losses.h"
#include "base/spin_lock.h"

namespace leadline {

// What a node had allocated that was alive at the device's peak.
struct PeakShare {
  std::int16_t device;
  ThreadIndex thread;
  NodeId node;
  std::int64_t bytes;
};

struct DeviceLive {
  std::int16_t device;
  std::int64_t live_bytes;
  std::int64_t peak_bytes;
};

class MemoryLedger {
 public:
  static constexpr std::int64_t kUnknownBytes = -1;
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

  // The address is free. Returns its bytes, or kUnknownBytes when it was not known or could not be booked at once (it
  // is booked later then). Any thread.
  std::int64_t release(std::uint64_t address) noexcept;

  // For the writer, which may wait: everything alive at the peak of its device, nodes without a share left out.
  std::vector<PeakShare> peak_shares();
  std::vector<DeviceLive> devices();

  // For the writer and tests: blocks alive now.
  std::size_t live_blocks();

  std::size_t held_bytes() const noexcept;

  // For a fork child and a new session: forgets everything; no other thread may use the ledger meanwhile.
  void clear() noexcept;

 private:
  struct Books;  // the maps, touched only by the holder
  struct Event;
  class Queue;
  class Hold;

  std::int64_t submit(const Event& event) noexcept;
  std::int64_t book(const Event& event) noexcept;
  std::int64_t book_in_order(const Event& event) noexcept;
  bool drain() noexcept;

  LossCounters* losses_;
  std::unique_ptr<Books> books_;
  std::unique_ptr<Queue> queue_;
  SpinLock lock_;
};

}  // namespace leadline
