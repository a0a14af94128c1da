#include "accesses/counts.h"

#include <bit>
#include <cstdlib>
#include <new>

namespace leadline::accesses {
namespace {

// Threads of all times; one that has ended leaves its record to the next new one.
std::atomic<Thread*> g_threads{nullptr};

struct Owner {
  Thread* thread = nullptr;
  ~Owner() {
    if (thread != nullptr) thread->taken.store(false, std::memory_order_release);
  }
};
thread_local Owner t_owner;

// Most words are empty or full, and counting bits takes a call where the processor's instruction may not be used.
uint64_t bytes_of(uint64_t units) noexcept {
  if (units == 0) return 0;
  return static_cast<uint64_t>(units == ~uint64_t{0} ? 64 : std::popcount(units)) << kUnitShift;
}

}  // namespace

thread_local Thread* Launch::mine_ = nullptr;

constinit Launch g_launch;

Thread* Launch::new_thread() noexcept {
  for (Thread* one = g_threads.load(std::memory_order_acquire); one != nullptr; one = one->next) {
    bool expected = false;
    // One that has counted in the launch under way keeps what it has until that ends.
    if (one->taken.compare_exchange_strong(expected, true, std::memory_order_acq_rel)) return one;
  }
  auto* made = new (std::nothrow) Thread;
  if (made == nullptr) return nullptr;
  made->next = g_threads.load(std::memory_order_relaxed);
  while (!g_threads.compare_exchange_weak(made->next, made, std::memory_order_acq_rel)) {
  }
  return made;
}

Thread* Launch::enter(uint64_t epoch) noexcept {
  Thread* thread = mine_;
  if (thread == nullptr) {
    thread = new_thread();
    if (thread == nullptr) return nullptr;
    t_owner.thread = thread;
    mine_ = thread;
    if (thread->epoch.load(std::memory_order_relaxed) == epoch) return thread;  // goes on where another one has ended
  }
  thread->outside_bytes = 0;
  thread->last = nullptr;
  thread->cache.fill({});
  for (size_t i = 0; i < count_; ++i) thread->slots[i] = Slot{spans_[i].begin, spans_[i].end, {}, {}, {}, {}};
  thread->epoch.store(epoch, std::memory_order_relaxed);
  return thread;
}

Slot* Launch::search(Thread& thread, Thread::Entry& entry, uintptr_t at) const noexcept {
  const auto* const over = std::upper_bound(spans_.data(), spans_.data() + count_, at,
                                            [](uintptr_t address, const Span& span) { return address < span.begin; });
  const uintptr_t page = at >> kPageShift;
  if (over == spans_.data() || at >= (over - 1)->end) {
    const bool before = over == spans_.data() || (over - 1)->end <= page << kPageShift;
    const bool after = over == spans_.data() + count_ || over->begin >= (page + 1) << kPageShift;
    if (before && after) entry = {page, nullptr};
    return nullptr;
  }
  Slot* const slot = &thread.slots[static_cast<size_t>(over - 1 - spans_.data())];
  thread.last = slot;
  if (page << kPageShift >= slot->begin && (page + 1) << kPageShift <= slot->end) entry = {page, slot};
  return slot;
}

bool Launch::begin(const uint64_t* spans, size_t count) noexcept {
  if (epoch_.load(std::memory_order_relaxed) != 0 || count > kMostSpans) return false;
  for (size_t i = 0; i < count; ++i) {
    const auto from = static_cast<uintptr_t>(spans[2 * i]);
    const auto until = static_cast<uintptr_t>(spans[2 * i + 1]);
    const size_t words = ((until - from) >> kUnitShift) / 64 + 1;
    Span& span = spans_[i];
    if (span.room < words) {
      std::free(span.bits[0]);
      auto* bits = static_cast<std::atomic<uint64_t>*>(std::calloc(2 * words, sizeof(uint64_t)));
      span = {0, 0, {bits, bits == nullptr ? nullptr : bits + words}, 0, bits == nullptr ? 0 : words};
      if (bits == nullptr) return false;
    }
    span.begin = from;
    span.end = until;
    span.words = words;
  }
  count_ = count;
  epoch_.store(++launches_, std::memory_order_release);
  return true;
}

uint64_t Launch::end(SpanResult* results, const uint64_t* page_sizes, size_t sizes, uint64_t* page_counts) noexcept {
  const uint64_t epoch = epoch_.exchange(0, std::memory_order_acq_rel);
  if (epoch == 0) return 0;
  uint64_t outside = 0;
  std::fill_n(results, count_, SpanResult{});
  for (Thread* one = g_threads.load(std::memory_order_acquire); one != nullptr; one = one->next) {
    if (one->epoch.load(std::memory_order_relaxed) != epoch) continue;
    outside += one->outside_bytes;
    for (size_t i = 0; i < count_; ++i) {
      Slot& slot = one->slots[i];
      flush(slot, false);
      flush(slot, true);
      results[i].read_bytes += slot.bytes[0];
      results[i].written_bytes += slot.bytes[1];
      results[i].loads += slot.calls[0];
      results[i].stores += slot.calls[1];
    }
  }
  for (size_t i = 0; i < count_; ++i) {
    const Span& span = spans_[i];
    SpanResult& result = results[i];
    result.first = ~uint64_t{0};
    uint64_t* counts = page_counts + i * sizes;
    std::fill_n(counts, sizes, 0);
    std::array<uint64_t, kMostPageSizes> page_end{};  // of the last page counted, for each size
    for (size_t word = 0; word < span.words; ++word) {
      // Nobody counts any more: bits go back to 0 as they are read.
      const uint64_t read = span.bits[0][word].load(std::memory_order_relaxed);
      const uint64_t written = span.bits[1][word].load(std::memory_order_relaxed);
      const uint64_t both = read | written;
      if (both == 0) continue;
      span.bits[0][word].store(0, std::memory_order_relaxed);
      span.bits[1][word].store(0, std::memory_order_relaxed);
      result.read_distinct += bytes_of(read);
      result.written_distinct += bytes_of(written);
      result.distinct += bytes_of(both);
      const uint64_t base = word * 64 << kUnitShift;
      result.first = std::min(result.first, base + (static_cast<uint64_t>(std::countr_zero(both)) << kUnitShift));
      result.end = base + (static_cast<uint64_t>(64 - std::countl_zero(both)) << kUnitShift);
      for (size_t s = 0; s < sizes && s < kMostPageSizes; ++s) {
        if (base < page_end[s]) continue;
        page_end[s] = (base / page_sizes[s] + 1) * page_sizes[s];
        ++counts[s];
      }
    }
    if (result.distinct == 0) result.first = 0;
    result.end = std::min<uint64_t>(result.end, span.end - span.begin);
  }
  return outside;
}

}  // namespace leadline::accesses
