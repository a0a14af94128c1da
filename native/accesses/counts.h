// Memory accesses of one launch at a time, added up where they happen: per span of addresses (a tensor's storage) bytes
// and instructions, and which units of four bytes were read and written at least once.
//
// Promises of the counting path: no lock, no system call, and memory only when a thread is new. Threads count for
// themselves; the bits are shared. begin() and end() are called by whoever launches, with no launch's thread at work.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace leadline::accesses {

inline constexpr size_t kMostSpans = 256;
inline constexpr unsigned kUnitShift = 2;  // four bytes
inline constexpr unsigned kPageShift = 16;
inline constexpr size_t kCached = 64;
inline constexpr uint32_t kNoSpan = kMostSpans;

struct Sums {
  uint64_t bytes[2];  // read, written
  uint64_t calls[2];  // instructions
};

// What a launch did in one span. Offsets are in bytes, in whole units.
struct SpanResult {
  uint64_t read_bytes;
  uint64_t written_bytes;
  uint64_t loads;
  uint64_t stores;
  uint64_t read_distinct;
  uint64_t written_distinct;
  uint64_t distinct;
  uint64_t first;
  uint64_t end;
};

class Launch;

// What one thread has counted since the launch `epoch` began.
struct Thread {
  std::atomic<uint64_t> epoch{0};
  std::atomic<bool> taken{true};
  Thread* next = nullptr;
  uint64_t outside_bytes = 0;
  uint32_t last = kNoSpan;
  struct Entry {
    uintptr_t page = 0;
    uint32_t span = kNoSpan;
  };
  std::array<Entry, kCached> cache{};
  std::array<Sums, kMostSpans> sums{};
};

struct Span {
  uintptr_t begin;
  uintptr_t end;
  std::atomic<uint64_t>* bits[2];
  size_t words;
};

class Launch {
 public:
  static Launch& instance() noexcept;

  // `spans`: begin and end of each, ascending and apart. False where a launch is under way, there are too many, or
  // there is no memory; nothing is counted then.
  bool begin(const uint64_t* spans, size_t count) noexcept;
  // Writes one result for each span, and for each span and page size the number of distinct pages (page_counts[span *
  // sizes + size]); page sizes are multiples of 256. Returns the bytes that lay in no span.
  uint64_t end(SpanResult* results, const uint64_t* page_sizes, size_t sizes, uint64_t* page_counts) noexcept;

  void take(const volatile void* address, size_t bytes, bool write) noexcept {
    const uint64_t epoch = epoch_.load(std::memory_order_relaxed);
    if (epoch == 0) return;
    Thread* thread = mine_;
    if (thread == nullptr || thread->epoch.load(std::memory_order_relaxed) != epoch) {
      thread = enter(epoch);
      if (thread == nullptr) return;
    }
    const auto at = reinterpret_cast<uintptr_t>(address);
    const uint32_t number = find(*thread, at);
    if (number == kNoSpan) {
      thread->outside_bytes += bytes;
      return;
    }
    Sums& sums = thread->sums[number];
    sums.bytes[write] += bytes;
    ++sums.calls[write];
    const Span& span = spans_[number];
    mark(span.bits[write], at - span.begin, std::min<size_t>(bytes, span.end - at));
  }

 private:
  uint32_t find(Thread& thread, uintptr_t at) const noexcept {
    Thread::Entry& entry = thread.cache[(at >> kPageShift) % kCached];
    if (entry.page == at >> kPageShift) return entry.span;
    if (thread.last != kNoSpan && at >= spans_[thread.last].begin && at < spans_[thread.last].end) return thread.last;
    return search(thread, entry, at);
  }
  static void mark(std::atomic<uint64_t>* bits, size_t offset, size_t bytes) noexcept {
    if (bytes == 0) return;
    size_t first = offset >> kUnitShift;
    const size_t last = (offset + bytes - 1) >> kUnitShift;
    while (first <= last) {
      const size_t word = first / 64;
      const size_t until = last / 64 == word ? last % 64 : 63;
      const uint64_t mask = (~uint64_t{0} >> (63 - (until - first % 64))) << (first % 64);
      if ((bits[word].load(std::memory_order_relaxed) & mask) != mask) {
        bits[word].fetch_or(mask, std::memory_order_relaxed);
      }
      first = (word + 1) * 64;
    }
  }
  uint32_t search(Thread& thread, Thread::Entry& entry, uintptr_t at) const noexcept;
  Thread* enter(uint64_t epoch) noexcept;
  static Thread* new_thread() noexcept;

  __attribute__((tls_model("initial-exec"))) static thread_local Thread* mine_;

  std::atomic<uint64_t> epoch_{0};  // 0: nothing is counted
  uint64_t launches_ = 0;
  size_t count_ = 0;
  std::array<Span, kMostSpans> spans_{};
};

}  // namespace leadline::accesses
