// The host's memory that the program has locked for devices, so that a copy from or to it can be told from one that has
// to go through a buffer. Written where memory is locked and given back, looked up at copies: these take no lock.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "gpu/work.h"

namespace leadline::gpu {

class HostMemory {
 public:
  static constexpr std::size_t kMost = 4096;  // ranges

  void take(std::uint64_t begin, std::uint64_t bytes) noexcept {
    if (begin == 0 || bytes == 0) return;
    const std::lock_guard lock(mutex_);
    const std::size_t count = count_.load(std::memory_order_relaxed);
    if (count == kMost) return miss();
    const Change change(*this);
    std::size_t at = count;
    for (; at > 0 && begin_of(at - 1) > begin; --at) put(at, begin_of(at - 1), end_of(at - 1));
    put(at, begin, begin + bytes);
    count_.store(count + 1, std::memory_order_release);
  }

  void give_back(std::uint64_t begin) noexcept {
    const std::lock_guard lock(mutex_);
    const std::size_t count = count_.load(std::memory_order_relaxed);
    for (std::size_t at = 0; at < count; ++at) {
      if (begin_of(at) != begin) continue;
      const Change change(*this);
      for (; at + 1 < count; ++at) put(at, begin_of(at + 1), end_of(at + 1));
      count_.store(count - 1, std::memory_order_release);
      return;
    }
  }

  // Something was, or may have been, locked that is not known of.
  void miss() noexcept { whole_.store(false, std::memory_order_relaxed); }

  // kPinned, kPageable, or kHost where it cannot be told.
  Memory of(std::uint64_t address) const noexcept {
    if (address == 0) return Memory::kHost;
    for (int tries = 0; tries < 4; ++tries) {
      const std::uint64_t version = version_.load(std::memory_order_acquire);
      if (version % 2 != 0) continue;
      const bool inside = contains(address);
      if (version_.load(std::memory_order_acquire) != version) continue;
      return inside ? Memory::kPinned : whole_.load(std::memory_order_relaxed) ? Memory::kPageable : Memory::kHost;
    }
    return Memory::kHost;
  }

 private:
  // Odd while it lasts.
  class Change {
   public:
    explicit Change(HostMemory& of) : of_(of) { of_.version_.fetch_add(1, std::memory_order_acq_rel); }
    ~Change() { of_.version_.fetch_add(1, std::memory_order_acq_rel); }
    Change(const Change&) = delete;
    Change& operator=(const Change&) = delete;

   private:
    HostMemory& of_;
  };

  std::uint64_t begin_of(std::size_t at) const noexcept { return begins_[at].load(std::memory_order_acquire); }
  std::uint64_t end_of(std::size_t at) const noexcept { return ends_[at].load(std::memory_order_acquire); }
  void put(std::size_t at, std::uint64_t begin, std::uint64_t end) noexcept {
    begins_[at].store(begin, std::memory_order_release);
    ends_[at].store(end, std::memory_order_release);
  }
  bool contains(std::uint64_t address) const noexcept {
    std::size_t low = 0;
    std::size_t high = count_.load(std::memory_order_acquire);
    while (low < high) {
      const std::size_t middle = (low + high) / 2;
      begin_of(middle) <= address ? low = middle + 1 : high = middle;
    }
    return low > 0 && address < end_of(low - 1);
  }

  std::mutex mutex_;  // of writers
  std::atomic<std::uint64_t> version_{0};
  std::atomic<bool> whole_{true};
  std::atomic<std::size_t> count_{0};
  std::array<std::atomic<std::uint64_t>, kMost> begins_{};
  std::array<std::atomic<std::uint64_t>, kMost> ends_{};
};

}  // namespace leadline::gpu
