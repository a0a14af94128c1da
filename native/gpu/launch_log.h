// What threads write at launches and at the borders of regions, in the order of each thread, for the thread that folds.
//
// Each thread writes pages of its own: no lock, no allocation, no line of memory shared with another launching thread.
// Pages come from one reservation, whose memory the system gives when it is first touched, and go back when they have
// been read, so that memory is bounded by what waits to be read. What finds no page is lost, and counted.
#pragma once

#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

#include "leadline/monitor.h"

namespace leadline::gpu {

struct LogEntry {
  enum class What : std::uint8_t {
    kLaunch,          // of which no record is awaited
    kLaunchWithWork,  // of which one is
    kExpected,        // records of launch `id` will come after all
    kCancelled,       // none will
    kPlace,           // the thread is in region `context` from now on; 0: in none
  };
  std::int64_t time_ns = 0;
  leadline_context context = 0;
  std::uint32_t id = 0;
  std::uint32_t outer = 0;
  What what = What::kPlace;
  std::uint8_t kind = 0;  // leadline_gpu_kind
  bool paused = false;
};

class LaunchLog {
 public:
  static constexpr std::uint32_t kThreads = 4096;
  static constexpr std::uint32_t kNone = kThreads;  // a thread without a place of its own
  static constexpr std::uint32_t kPages = 1u << 14;
  static constexpr std::uint32_t kInPage = 127;

  LaunchLog() : threads_(std::make_unique<Thread[]>(kThreads + 1)) {
    void* const pages =
        ::mmap(nullptr, kReserved, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages == MAP_FAILED) throw std::bad_alloc();
    pages_.reset(static_cast<Page*>(pages));
    for (auto& word : free_) word.store(~std::uint64_t{0}, std::memory_order_relaxed);
  }
  LaunchLog(const LaunchLog&) = delete;
  LaunchLog& operator=(const LaunchLog&) = delete;

  // A place for the calling thread; kNone: there are too many threads.
  std::uint32_t take() noexcept {
    for (std::uint32_t i = 0; i < kThreads; ++i) {
      bool taken = false;
      if (!threads_[i].taken.compare_exchange_strong(taken, true, std::memory_order_acq_rel)) continue;
      raise(used_, i + 1);
      threads_[i].inside.store(false, std::memory_order_relaxed);
      // The thread before was in regions of its own.
      if (threads_[i].last != nullptr) append(i, {.time_ns = leadline_monitor_now()});
      return i;
    }
    return kNone;
  }
  void give_back(std::uint32_t thread) noexcept {
    if (thread < kThreads) threads_[thread].taken.store(false, std::memory_order_release);
  }

  // The thread whose place it is begins and ends a call whose end somebody awaits.
  void begins(std::uint32_t thread) noexcept {
    Thread& of = threads_[thread];
    if (thread < kThreads) [[likely]] {
      of.inside.store(true, std::memory_order_release);
      of.calls.store(of.calls.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    } else {
      of.calls.fetch_add(1, std::memory_order_relaxed);
    }
  }
  void ends(std::uint32_t thread) noexcept {
    if (thread < kThreads) threads_[thread].inside.store(false, std::memory_order_release);
  }
  bool any_inside() const noexcept {
    bool any = false;
    each_thread([&](std::uint32_t i) { any = any || threads_[i].inside.load(std::memory_order_acquire); });
    return any;
  }

  // By the thread whose place it is; kNone: by any thread.
  bool append(std::uint32_t thread, const LogEntry& entry) noexcept {
    if (thread < kThreads) [[likely]]
      return write(threads_[thread], entry);
    // Threads that end, or are too many: they share a place, and none waits for long.
    for (int tries = 0; tries < 1000; ++tries) {
      if (!shared_.test_and_set(std::memory_order_acquire)) {
        const bool written = write(threads_[kThreads], entry);
        shared_.clear(std::memory_order_release);
        return written;
      }
    }
    lost_.fetch_add(1, std::memory_order_relaxed);
    return false;
  }

  // One thread at a time. Hands over what each thread has written, thread by thread: read(thread, entry).
  template <class Read>
  void drain(Read&& read) noexcept {
    each_thread([&](std::uint32_t i) {
      Thread& thread = threads_[i];
      if (thread.first == nullptr) thread.first = thread.begin.load(std::memory_order_acquire);
      while (Page* const page = thread.first) {
        const std::uint32_t written = page->written.load(std::memory_order_acquire);
        for (; thread.read < written; ++thread.read) read(i, page->entries[thread.read]);
        Page* const next = written == kInPage ? page->next.load(std::memory_order_acquire) : nullptr;
        if (next == nullptr) break;
        thread.first = next;
        thread.read = 0;
        free_page(page);
      }
    });
  }

  // Calls that began so far.
  std::uint64_t calls() const noexcept {
    std::uint64_t sum = 0;
    each_thread([&](std::uint32_t i) { sum += threads_[i].calls.load(std::memory_order_relaxed); });
    return sum;
  }
  // Launches with work, or whose work is expected, that were written so far.
  std::uint64_t works() const noexcept {
    std::uint64_t sum = 0;
    each_thread([&](std::uint32_t i) { sum += threads_[i].works.load(std::memory_order_acquire); });
    return sum;
  }
  // Entries for which there was no page.
  std::uint64_t lost() const noexcept { return lost_.load(std::memory_order_relaxed); }
  std::size_t held_bytes() const noexcept {
    return sizeof(Page) * most_pages_.load(std::memory_order_relaxed) + sizeof(Thread) * (kThreads + 1);
  }

 private:
  struct Page {
    std::atomic<std::uint32_t> written;
    std::uint32_t number;
    std::atomic<Page*> next;
    std::uint64_t unused[2];
    std::array<LogEntry, kInPage> entries;
  };
  static_assert(sizeof(LogEntry) == 32 && sizeof(Page) == 4096);
  static constexpr std::size_t kReserved = sizeof(Page) * kPages;

  struct alignas(64) Thread {
    // Of the thread whose place it is.
    Page* last = nullptr;
    std::uint32_t next_entry = 0;
    std::atomic<bool> taken{false};
    std::atomic<bool> inside{false};
    std::atomic<std::uint64_t> works{0};
    std::atomic<std::uint64_t> calls{0};
    std::atomic<Page*> begin{nullptr};
    // Of the thread that reads; a line of its own.
    alignas(64) Page* first = nullptr;
    std::uint32_t read = 0;
  };
  struct Free {
    void operator()(Page* pages) const noexcept { ::munmap(pages, kReserved); }
  };

  bool write(Thread& thread, const LogEntry& entry) noexcept {
    if (thread.last == nullptr || thread.next_entry == kInPage) [[unlikely]] {
      Page* const fresh = take_page();
      if (fresh == nullptr) {
        lost_.fetch_add(1, std::memory_order_relaxed);
        return false;
      }
      thread.last == nullptr ? thread.begin.store(fresh, std::memory_order_release)
                             : thread.last->next.store(fresh, std::memory_order_release);
      thread.last = fresh;
      thread.next_entry = 0;
    }
    if (entry.what == LogEntry::What::kLaunchWithWork || entry.what == LogEntry::What::kExpected) {
      thread.works.store(thread.works.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    }
    thread.last->entries[thread.next_entry] = entry;
    thread.last->written.store(++thread.next_entry, std::memory_order_release);
    return true;
  }

  // Once in kInPage entries. The first that is free, so that as few as possible are ever touched.
  Page* take_page() noexcept {
    for (std::uint32_t word = 0; word < free_.size(); ++word) {
      std::uint64_t free = free_[word].load(std::memory_order_relaxed);
      while (free != 0) {
        const auto bit = static_cast<std::uint32_t>(__builtin_ctzll(free));
        if (!free_[word].compare_exchange_weak(free, free & ~(std::uint64_t{1} << bit), std::memory_order_acquire))
          continue;
        const std::uint32_t number = word * 64 + bit;
        raise(most_pages_, number + 1);
        Page* const page = new (&pages_.get()[number]) Page;
        page->written.store(0, std::memory_order_relaxed);
        page->next.store(nullptr, std::memory_order_relaxed);
        page->number = number;
        return page;
      }
    }
    return nullptr;
  }
  void free_page(const Page* page) noexcept {
    free_[page->number / 64].fetch_or(std::uint64_t{1} << page->number % 64, std::memory_order_release);
  }
  static void raise(std::atomic<std::uint32_t>& number, std::uint32_t to) noexcept {
    std::uint32_t now = number.load(std::memory_order_relaxed);
    while (now < to && !number.compare_exchange_weak(now, to, std::memory_order_acq_rel)) {
    }
  }
  template <class Each>
  void each_thread(Each&& each) const noexcept {
    const std::uint32_t used = used_.load(std::memory_order_acquire);
    for (std::uint32_t i = 0; i < used; ++i) each(i);
    each(kThreads);
  }

  std::unique_ptr<Page, Free> pages_;  // an array
  std::unique_ptr<Thread[]> threads_;  // the last is shared
  std::array<std::atomic<std::uint64_t>, kPages / 64> free_;
  std::atomic<std::uint32_t> used_{0};  // places that were ever taken
  std::atomic<std::uint32_t> most_pages_{0};
  std::atomic<std::uint64_t> lost_{0};
  std::atomic_flag shared_ = ATOMIC_FLAG_INIT;
};

}  // namespace leadline::gpu
