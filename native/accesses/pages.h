// Which parts of some tensors an operator really touches, by the processor's own protection of pages: their memory is
// closed, each first access of a block faults, and the handler of SIGSEGV notes the block and opens it.
//
// Promises of the handler: no lock, no memory, no call but mprotect and sigaction. Memory that shares a page with
// anything else is never closed: only whole pages within a span are, what lies before and behind is an edge. While
// memory is closed a system call that is handed it fails (EFAULT), so callers must know what they watch.
#pragma once

#include <array>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace leadline::accesses {

// What was touched of one span. Offsets and page numbers count from the start of the span's object. Edges count as read
// or written where the span was said to be.
struct PagesResult {
  uint64_t read_bytes;     // in blocks that were read first, and edges
  uint64_t written_bytes;  // in blocks that were written, and edges
  uint64_t distinct;
  uint64_t first;
  uint64_t end;
  uint64_t faults;
  uint64_t incomplete;  // 1: the kernel had no room for more mappings, so what follows was not seen
};

struct PagesSpan {
  uint64_t object;  // where the object begins
  uint64_t begin;   // what is watched of it
  uint64_t end;
  uint64_t uses;  // 1: said to be read, 2: to be written, 3: both
};

class PageWatch {
 public:
  static constexpr size_t kMostSpans = 256;
  enum class Begin { kWatching = 1, kBusy = 0, kNoHandler = -1 };

  static PageWatch& instance() noexcept;

  // Installs the handler; false where the system refuses. Again after a fork: opens what the parent had closed.
  bool start() noexcept;
  // Opens everything, and puts the handler that was there before back where ours is the one in force.
  void stop() noexcept;
  // Closes the whole pages of all spans; `block` bytes are opened at a fault, a multiple of the page's size.
  // kNoHandler: the program has put a handler of its own above ours too often.
  Begin begin(const PagesSpan* spans, size_t count, size_t block);
  // Opens everything again; one result for each span, and for each span and page size how many distinct pages of that
  // size were touched (page_counts[span * sizes + size]).
  void end(PagesResult* results, const uint64_t* page_sizes, size_t sizes, uint64_t* page_counts) noexcept;

 private:
  struct Watched {
    PagesSpan span{};
    uintptr_t inner_begin = 0;  // whole pages
    uintptr_t inner_end = 0;
    std::atomic<uint8_t>* touched = nullptr;  // one for each block: 1 read, 2 written
    std::atomic<uint64_t> faults{0};
    std::atomic<bool> incomplete{false};
  };
  static constexpr size_t kMostHandlers = 8;

  static void on_fault(int signal, siginfo_t* info, void* context);
  bool take(uintptr_t address, int write) noexcept;
  void yield() noexcept;
  bool install() noexcept;
  bool in_force() noexcept;
  void open_all() noexcept;

  size_t page_ = 4096;
  size_t block_ = 65536;
  std::atomic<size_t> count_{0};    // 0: nothing is closed
  std::atomic<uint64_t> ended_{0};  // launches
  std::atomic<bool> ending_{false};
  std::atomic<unsigned> at_work_{0};  // threads in the handler
  std::array<Watched, kMostSpans> spans_{};
  std::vector<std::atomic<uint8_t>> blocks_;
  // Handlers that were in force before ours, the latest last. A fault that is not ours goes to the latest, and to the
  // one before if that one hands it back to us.
  std::array<struct sigaction, kMostHandlers> before_{};
  std::atomic<size_t> handlers_{0};
};

}  // namespace leadline::accesses
