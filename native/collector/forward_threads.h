// Which thread ran the forward operators that an autograd thread asks for, by the framework's own number of the thread.
//
// A forward thread may have ended long before its backward runs (a thread per request, replicas of DataParallel), so
// the numbers belong to the framework's thread and not to what measures it. Ended threads are remembered up to kEnded
// of them and kEndedBytes; then the oldest is forgotten, and its backward operators are not found, which is counted.
// Looking up locks nothing; beginning and ending a thread take a short lock.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <vector>

#include "base/ids.h"
#include "base/spin_lock.h"
#include "collector/sequence_ring.h"

namespace leadline {

class ForwardThreads {
 public:
  static constexpr size_t kEnded = 1024;
  static constexpr size_t kEndedBytes = size_t{64} << 20;

  struct alignas(64) Thread {
    std::atomic<uint64_t> number{0};  // the framework's; 0 while it is nobody's
    std::atomic<uint32_t> tree{raw(kNoThread)};
    SequenceRing ring;  // written by the thread itself
    bool ended = false;
    std::list<Thread*>::iterator place;  // among the ended ones
  };
  struct Forward {
    ThreadIndex tree = kNoThread;
    NodeId node = kNoNode;
  };

  // For the thread itself. nullptr where number is 0, too many threads live, or memory is short: then it is worth
  // asking again.
  Thread* begin(uint64_t number, ThreadIndex tree, bool* no_memory = nullptr) noexcept;
  void end(Thread& thread) noexcept;

  // Any thread. kNoNode where the thread or the sequence number is not known (any more).
  [[gnu::hot]] Forward find(uint64_t number, int64_t sequence) noexcept;
  ThreadIndex tree_of(uint64_t number) const noexcept;

  size_t held_bytes() const noexcept;

  // For a fork child: no other thread exists.
  void clear() noexcept;

 private:
  static constexpr uint32_t kSets = 1024;  // numbers are given in turn, so they spread evenly
  static constexpr uint32_t kWays = 8;
  using Set = std::array<std::atomic<Thread*>, kWays>;

  [[gnu::hot]] Thread* known(uint64_t number) const noexcept;
  Thread* take_unused();
  void forget(Thread& thread) noexcept;

  std::array<Set, kSets> sets_{};
  mutable SpinLock lock_;  // of all that follows
  std::vector<std::unique_ptr<Thread>> all_;
  std::vector<Thread*> unused_;
  std::list<Thread*> ended_;  // oldest first
  size_t ended_bytes_ = 0;
};

}  // namespace leadline
