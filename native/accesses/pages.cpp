#include "accesses/pages.h"

#include <sched.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <new>

namespace leadline::accesses {
namespace {

// The fault that this thread was handed last and that was nobody's, and how many launches had ended by then: a block
// may be opened, and its launch ended, between an access and its handler. So an access is tried again, and its fault
// given away only where it comes again and no launch has ended meanwhile.
struct Nobodys {
  uintptr_t address;
  uint64_t ended;
};
__attribute__((tls_model("initial-exec"))) thread_local Nobodys nobodys{0, 0};

// 1: a store, 0: a load, -1: the processor does not say.
int stores(const void* context) noexcept {
  const auto& machine = static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  return (machine.gregs[REG_ERR] & 2) != 0 ? 1 : 0;
#elif defined(__aarch64__)
  // Records of the extension follow each other, each with a magic number and its size; the syndrome's bit 6 tells.
  constexpr uint32_t kSyndrome = 0x45535201;
  const unsigned char* at = reinterpret_cast<const unsigned char*>(&machine.__reserved[0]);
  const unsigned char* const over = at + sizeof machine.__reserved;
  while (at + 16 <= over) {
    uint32_t magic = 0;
    uint32_t size = 0;
    __builtin_memcpy(&magic, at, 4);
    __builtin_memcpy(&size, at + 4, 4);
    if (magic == 0 || size < 8) break;
    if (magic == kSyndrome) {
      uint64_t syndrome = 0;
      __builtin_memcpy(&syndrome, at + 8, 8);
      return (syndrome >> 6) & 1 ? 1 : 0;
    }
    at += size;
  }
  return -1;
#else
  (void)machine;
  return -1;
#endif
}

// Opens for reading and writing, or for reading what may not be written (a shared mapping of a file opened so).
bool open(uintptr_t begin, uintptr_t end, bool writable) noexcept {
  void* const at = reinterpret_cast<void*>(begin);  // NOLINT(performance-no-int-to-ptr)
  if (writable && mprotect(at, end - begin, PROT_READ | PROT_WRITE) == 0) return true;
  return (!writable || errno == EACCES) && mprotect(at, end - begin, PROT_READ) == 0;
}

}  // namespace

PageWatch& PageWatch::instance() noexcept {
  static PageWatch watch;
  return watch;
}

bool PageWatch::in_force() noexcept {
  struct sigaction now {};
  return sigaction(SIGSEGV, nullptr, &now) == 0 && (now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == &on_fault;
}

bool PageWatch::start() noexcept {
  at_work_.store(0);  // threads of a parent
  open_all();
  page_ = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return install();
}

bool PageWatch::install() noexcept {
  if (in_force()) return true;
  const size_t handlers = handlers_.load(std::memory_order_relaxed);
  if (handlers == kMostHandlers) return false;
  struct sigaction mine {};
  mine.sa_sigaction = &on_fault;
  mine.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&mine.sa_mask);
  if (sigaction(SIGSEGV, nullptr, &before_[handlers]) != 0) return false;
  handlers_.store(handlers + 1, std::memory_order_release);  // known before ours can be called
  return sigaction(SIGSEGV, &mine, nullptr) == 0;
}

void PageWatch::stop() noexcept {
  open_all();
  if (handlers_.load(std::memory_order_relaxed) != 0 && in_force()) yield();
}

// Puts the handler before ours in force.
void PageWatch::yield() noexcept {
  const size_t handlers = handlers_.load(std::memory_order_acquire);
  struct sigaction plain {};
  plain.sa_handler = SIG_DFL;
  sigaction(SIGSEGV, handlers == 0 ? &plain : &before_[handlers - 1], nullptr);
  if (handlers != 0) handlers_.store(handlers - 1, std::memory_order_relaxed);
}

PageWatch::Begin PageWatch::begin(const PagesSpan* spans, size_t count, size_t block) {
  if (count_.load(std::memory_order_relaxed) != 0 || count == 0 || count > kMostSpans) return Begin::kBusy;
  if (!install()) return Begin::kNoHandler;
  block_ = block;
  size_t blocks = 0;
  for (size_t i = 0; i < count; ++i) {
    Watched& one = spans_[i];
    one.span = spans[i];
    one.inner_begin = (spans[i].begin + page_ - 1) / page_ * page_;
    one.inner_end = std::max(spans[i].end / page_ * page_, one.inner_begin);
    one.faults.store(0, std::memory_order_relaxed);
    one.incomplete.store(false, std::memory_order_relaxed);
    blocks += (one.inner_end - one.inner_begin + block - 1) / block;
  }
  if (blocks_.size() < blocks) blocks_ = std::vector<std::atomic<uint8_t>>(2 * blocks);
  std::atomic<uint8_t>* at = blocks_.data();
  for (size_t i = 0; i < count; ++i) {
    spans_[i].touched = at;
    at += (spans_[i].inner_end - spans_[i].inner_begin + block - 1) / block;
  }
  std::for_each(blocks_.data(), at, [](std::atomic<uint8_t>& one) { one.store(0, std::memory_order_relaxed); });
  count_.store(count);
  for (size_t i = 0; i < count; ++i) {
    Watched& one = spans_[i];
    if (one.inner_end == one.inner_begin) continue;
    void* const from = reinterpret_cast<void*>(one.inner_begin);  // NOLINT(performance-no-int-to-ptr)
    // Memory of pages that the system cannot close one by one (huge ones): all of it counts.
    if (mprotect(from, one.inner_end - one.inner_begin, PROT_NONE) != 0) one.incomplete.store(true);
  }
  return Begin::kWatching;
}

bool PageWatch::take(uintptr_t address, int write) noexcept {
  const size_t count = count_.load();
  for (size_t i = 0; i < count; ++i) {
    Watched& one = spans_[i];
    if (address < one.inner_begin || address >= one.inner_end) continue;
    const size_t number = (address - one.inner_begin) / block_;
    const uintptr_t from = one.inner_begin + number * block_;
    std::atomic<uint8_t>& touched = one.touched[number];
    // A load opens for loads only, so that a store that follows is seen. Where the processor tells nothing the first
    // fault counts as a load, and the second as a store.
    const bool stored = write == 1 || (write == -1 && touched.load(std::memory_order_relaxed) != 0);
    touched.fetch_or(stored ? 2 : 1, std::memory_order_relaxed);
    one.faults.fetch_add(1, std::memory_order_relaxed);
    if (open(from, std::min(from + block_, one.inner_end), stored)) return true;
    one.incomplete.store(true, std::memory_order_relaxed);
    return open(one.inner_begin, one.inner_end, true);
  }
  return false;
}

void PageWatch::on_fault(int signal, siginfo_t* info, void* context) {
  const int saved = errno;
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  PageWatch& watch = instance();
  const bool sent = info->si_code <= 0;  // by kill(): nothing is tried again when we return
  watch.at_work_.fetch_add(1);
  const bool taken = !sent && watch.take(address, stores(context));
  watch.at_work_.fetch_sub(1);
  if (!taken && (sent || !watch.ending_.load())) {
    const uint64_t ended = watch.ended_.load() + 1;  // 0 is a thread without a fault
    if (!sent && (nobodys.address != address || nobodys.ended != ended)) {
      nobodys = {address, ended};
    } else {
      watch.yield();  // the access faults again, and its handler is called as if we were not here
      if (sent) raise(signal);
    }
  }
  errno = saved;
}

void PageWatch::open_all() noexcept {
  const size_t count = count_.load();
  if (count == 0) return;
  const auto open_spans = [&] {
    for (size_t i = 0; i < count; ++i) {
      if (spans_[i].inner_end != spans_[i].inner_begin) open(spans_[i].inner_begin, spans_[i].inner_end, true);
    }
  };
  // Whoever reads a tensor beside the operator may be in the handler now, about to open a block for loads only: it is
  // waited for, and what it left is opened. That one may also have come and gone between the first opening and the
  // look at at_work_, so the second opening is never left out. Faults meanwhile are tried again; the first opening
  // makes them rare, so that the wait is short.
  ending_.store(true);
  open_spans();
  count_.store(0);
  while (at_work_.load() != 0) sched_yield();
  open_spans();
  ended_.fetch_add(1);
  ending_.store(false);
}

void PageWatch::end(PagesResult* results, const uint64_t* page_sizes, size_t sizes, uint64_t* page_counts) noexcept {
  const size_t count = count_.load(std::memory_order_relaxed);
  open_all();
  for (size_t i = 0; i < count; ++i) {
    const Watched& one = spans_[i];
    PagesResult& result = results[i];
    result = {};
    result.faults = one.faults.load(std::memory_order_relaxed);
    result.incomplete = one.incomplete.load(std::memory_order_relaxed) ? 1 : 0;
    const uint64_t object = one.span.object;
    // Pages are counted from the object's first whole page of the system, so that a block lies in one; what lies before
    // is page -1.
    const auto origin = static_cast<int64_t>((object + page_ - 1) / page_ * page_);
    std::array<int64_t, 16> next{};  // the first page of each size that is not counted yet
    next.fill(INT64_MIN);
    sizes = std::min(sizes, next.size());
    const auto add = [&](uint64_t from, uint64_t until, unsigned uses) {
      if (from >= until || uses == 0) return;
      const uint64_t bytes = until - from;
      if (result.distinct == 0) result.first = from - object;
      result.end = until - object;
      result.distinct += bytes;
      if ((uses & 1) != 0) result.read_bytes += bytes;
      if ((uses & 2) != 0) result.written_bytes += bytes;
      for (size_t size = 0; size < sizes; ++size) {
        const auto page_of = [&](uint64_t address) {
          const int64_t offset = static_cast<int64_t>(address) - origin;
          return offset < 0 ? -1 : offset / static_cast<int64_t>(page_sizes[size]);
        };
        const int64_t begin = std::max(page_of(from), next[size]);
        const int64_t over = page_of(until - 1) + 1;
        if (over > begin) page_counts[i * sizes + size] += static_cast<uint64_t>(over - begin);
        next[size] = std::max(next[size], over);
      }
    };
    const auto said = static_cast<unsigned>(one.span.uses);
    add(one.span.begin, std::min<uint64_t>(one.inner_begin, one.span.end), said);
    for (uintptr_t at = one.inner_begin; at < one.inner_end; at += block_) {
      const unsigned seen = one.touched[(at - one.inner_begin) / block_].load(std::memory_order_relaxed);
      add(at, std::min(at + block_, one.inner_end), result.incomplete != 0 ? said : seen);
    }
    add(one.inner_end, one.span.end, said);
  }
}

}  // namespace leadline::accesses

#define LL_CALLED extern "C" __attribute__((visibility("default")))

using leadline::accesses::PagesResult;
using leadline::accesses::PagesSpan;
using leadline::accesses::PageWatch;

LL_CALLED int ll_pages_start() { return PageWatch::instance().start() ? 1 : 0; }
LL_CALLED void ll_pages_stop() { PageWatch::instance().stop(); }
LL_CALLED int ll_pages_begin(const PagesSpan* spans, size_t count, size_t block) {
  try {
    return static_cast<int>(PageWatch::instance().begin(spans, count, block));
  } catch (const std::bad_alloc&) {
    return 0;
  }
}
LL_CALLED void ll_pages_end(PagesResult* results, const uint64_t* page_sizes, size_t sizes, uint64_t* page_counts) {
  PageWatch::instance().end(results, page_sizes, sizes, page_counts);
}
