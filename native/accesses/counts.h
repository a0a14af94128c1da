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
inline constexpr unsigned kPageShift = 12;
inline constexpr size_t kCached = 256;
inline constexpr size_t kMostPageSizes = 16;

struct Span {
  uintptr_t begin;
  uintptr_t end;
  std::atomic<uint64_t>* bits[2];
  size_t words;
  size_t room;  // words that are held, all of them 0 between launches
};

// What a thread has counted of one span; [0] read, [1] written. Bits of one word wait here, since neighbours follow
// each other: an atomic instruction for each access would take three times as long as all the rest.
struct alignas(64) Slot {
  uintptr_t begin;
  uintptr_t end;
  uint64_t bytes[2];
  uint64_t calls[2];
  std::atomic<uint64_t>* word[2];
  uint64_t waiting[2];
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
  Slot* last = nullptr;
  // A page that lies in one span, or in none: a kernel's own variables are asked for as often as its tensors.
  struct Entry {
    uintptr_t page = 0;
    Slot* slot = nullptr;
  };
  std::array<Entry, kCached> cache{};
  std::array<Slot, kMostSpans> slots{};
};

class Launch {
 public:
  constexpr Launch() noexcept = default;
  static Launch& instance() noexcept;

  // `spans`: begin and end of each, ascending and apart. False where a launch is under way, there are too many, or
  // there is no memory; nothing is counted then.
  bool begin(const uint64_t* spans, size_t count) noexcept;
  // Writes one result for each span, and for each span and page size the number of distinct pages (page_counts[span *
  // sizes + size]); page sizes are multiples of 256. Returns the bytes that lay in no span.
  uint64_t end(SpanResult* results, const uint64_t* page_sizes, size_t sizes, uint64_t* page_counts) noexcept;

  [[gnu::always_inline]] void take(const volatile void* address, size_t bytes, bool write) noexcept {
    const uint64_t epoch = epoch_.load(std::memory_order_relaxed);
    if (epoch == 0) return;
    Thread* thread = mine_;
    if (thread == nullptr || thread->epoch.load(std::memory_order_relaxed) != epoch) {
      thread = enter(epoch);
      if (thread == nullptr) return;
    }
    const auto at = reinterpret_cast<uintptr_t>(address);
    Thread::Entry& entry = thread->cache[place_of(at >> kPageShift)];
    Slot* slot = entry.slot;
    if (entry.page != at >> kPageShift) {
      slot = thread->last;
      if (slot == nullptr || at < slot->begin || at >= slot->end) slot = search(*thread, entry, at);
    }
    if (slot == nullptr) {
      thread->outside_bytes += bytes;
      return;
    }
    slot->bytes[write] += bytes;
    ++slot->calls[write];
    mark(*thread, *slot, write, at - slot->begin, std::min<size_t>(bytes, slot->end - at));
  }

 private:
  // Tensors of one size lie a power of two apart: their pages must not share a place.
  static size_t place_of(uintptr_t page) noexcept {
    return static_cast<size_t>((uint64_t{page} * 0x9E3779B97F4A7C15u) >> 56) % kCached;
  }
  [[gnu::always_inline]] void mark(const Thread& thread, Slot& slot, bool write, size_t offset,
                                   size_t bytes) const noexcept {
    if (bytes == 0) return;
    size_t first = offset >> kUnitShift;
    const size_t last = (offset + bytes - 1) >> kUnitShift;
    std::atomic<uint64_t>* const bits = spans_[static_cast<size_t>(&slot - thread.slots.data())].bits[write];
    while (first <= last) {
      std::atomic<uint64_t>* const word = bits + first / 64;
      const size_t until = std::min(last, first | 63);
      const uint64_t mask = (~uint64_t{0} >> (63 - (until - first))) << (first % 64);
      if (slot.word[write] != word) {
        flush(slot, write);
        slot.word[write] = word;
      }
      slot.waiting[write] |= mask;
      first = until + 1;
    }
  }
  static void flush(Slot& slot, bool write) noexcept {
    std::atomic<uint64_t>* const word = slot.word[write];
    const uint64_t mask = slot.waiting[write];
    if (mask != 0 && (word->load(std::memory_order_relaxed) & mask) != mask) {
      word->fetch_or(mask, std::memory_order_relaxed);
    }
    slot.waiting[write] = 0;
  }
  [[gnu::noinline]] Slot* search(Thread& thread, Thread::Entry& entry, uintptr_t at) const noexcept;
  [[gnu::noinline]] Thread* enter(uint64_t epoch) noexcept;
  static Thread* new_thread() noexcept;

  __attribute__((tls_model("initial-exec"))) static thread_local Thread* mine_;

  std::atomic<uint64_t> epoch_{0};  // 0: nothing is counted
  uint64_t launches_ = 0;
  size_t count_ = 0;
  std::array<Span, kMostSpans> spans_{};
};

// There is one: kernels hold Python's lock, so they come one after the other.
extern Launch g_launch;

inline Launch& Launch::instance() noexcept { return g_launch; }

}  // namespace leadline::accesses
