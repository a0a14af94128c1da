// Blocks that loads and stores touch, against what was done; edges; memory that may not be written; readers beside a
// launch; handlers of the program's own; a fault that is not ours.
#include "accesses/pages.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <set>
#include <thread>
#include <vector>

using namespace leadline::accesses;

namespace {

#if defined(__x86_64__)
constexpr bool kTellsStores = true;
#else
constexpr bool kTellsStores = false;  // an emulator need not say
#endif

constexpr size_t kPage = 4096;

struct Memory {
  explicit Memory(size_t bytes, int protection = PROT_READ | PROT_WRITE) : size(bytes) {
    at = static_cast<unsigned char*>(mmap(nullptr, size, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    REQUIRE(at != MAP_FAILED);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() { munmap(at, size); }
  [[nodiscard]] PagesSpan span(size_t begin, size_t end, uint64_t uses) const {
    const auto object = reinterpret_cast<uint64_t>(at);
    return {object, object + begin, object + end, uses};
  }
  [[nodiscard]] unsigned char load(size_t offset) const { return __atomic_load_n(at + offset, __ATOMIC_RELAXED); }
  void store(size_t offset) const { __atomic_store_n(at + offset, 7, __ATOMIC_RELAXED); }

  unsigned char* at;
  size_t size;
};

std::vector<PagesResult> end(size_t spans, const std::vector<uint64_t>& sizes, std::vector<uint64_t>* counts) {
  std::vector<PagesResult> results(spans);
  counts->assign(spans * sizes.size(), 0);
  PageWatch::instance().end(results.data(), sizes.data(), sizes.size(), counts->data());
  return results;
}

struct Started {
  Started() { REQUIRE(PageWatch::instance().start()); }
  Started(const Started&) = delete;
  Started& operator=(const Started&) = delete;
  ~Started() { PageWatch::instance().stop(); }
};

}  // namespace

TEST_CASE("random loads and stores are seen by block, with the edges") {
  const Started started;
  std::mt19937_64 random(11);
  for (int round = 0; round < 20; ++round) {
    const size_t block = kPage << random() % 5;
    const Memory memory(300 * kPage);
    const size_t object = random() % 2 == 0 ? 0 : random() % kPage;  // of a heap, at no page's begin
    const size_t begin = object + random() % (3 * kPage);
    const size_t over = memory.size - random() % (3 * kPage);
    const size_t inner = (begin + kPage - 1) / kPage * kPage;
    const size_t first_page = object == 0 ? 0 : kPage;
    const size_t inner_end = over / kPage * kPage;
    std::vector<PagesSpan> spans{memory.span(begin, over, 1)};
    spans[0].object += object;
    REQUIRE(PageWatch::instance().begin(spans.data(), 1, block) == PageWatch::Begin::kWatching);
    std::set<size_t> read;
    std::set<size_t> written;
    for (int i = 0; i < 40; ++i) {
      const size_t offset = begin + random() % (over - begin);
      const bool store = random() % 2 == 0;
      if (store) {
        memory.store(offset);
      } else {
        static_cast<void>(memory.load(offset));
      }
      if (offset < inner || offset >= inner_end) continue;
      const size_t number = (offset - inner) / block;
      if (store) {
        written.insert(number);
      } else if (!written.contains(number)) {  // what a store has opened is open for loads
        read.insert(number);
      }
    }
    const std::vector<uint64_t> sizes{kPage, 65536};
    std::vector<uint64_t> counts;
    const auto result = end(1, sizes, &counts).front();
    const size_t edges = (inner - begin) + (over - inner_end);
    const auto bytes_of = [&](const std::set<size_t>& numbers) {
      size_t bytes = 0;
      for (const size_t number : numbers) bytes += std::min(block, inner_end - inner - number * block);
      return bytes;
    };
    std::set<size_t> touched = read;
    touched.insert(written.begin(), written.end());
    CHECK(result.distinct == bytes_of(touched) + edges);
    CHECK(result.written_bytes == bytes_of(written));
    if (kTellsStores) CHECK(result.read_bytes == bytes_of(read) + edges);
    CHECK(result.incomplete == 0);
    for (size_t size = 0; size < sizes.size(); ++size) {
      std::set<size_t> pages;
      const auto add = [&](size_t from, size_t until) {
        for (size_t at = from; at < until; ++at) {
          pages.insert(at < first_page ? SIZE_MAX : (at - first_page) / sizes[size]);
        }
      };
      add(begin, inner);
      for (const size_t number : touched)
        add(inner + number * block, std::min(inner + (number + 1) * block, inner_end));
      add(inner_end, over);
      CHECK(counts[size] == pages.size());
    }
  }
}

TEST_CASE("a span without a whole page is an edge, and nothing of it is closed") {
  const Started started;
  const Memory memory(4 * kPage);
  const std::vector<PagesSpan> spans{memory.span(10, 200, 2), memory.span(kPage + 100, 2 * kPage + 50, 3)};
  REQUIRE(PageWatch::instance().begin(spans.data(), spans.size(), kPage) == PageWatch::Begin::kWatching);
  CHECK(PageWatch::instance().begin(spans.data(), spans.size(), kPage) == PageWatch::Begin::kBusy);
  std::vector<uint64_t> counts;
  const auto results = end(2, {kPage}, &counts);
  CHECK(results[0].distinct == 190);
  CHECK(results[0].read_bytes == 0);
  CHECK(results[0].written_bytes == 190);
  CHECK(results[0].faults == 0);
  CHECK(results[1].distinct == kPage - 50);
  CHECK(results[1].first == kPage + 100);
  CHECK(results[1].end == 2 * kPage + 50);
  CHECK(counts == std::vector<uint64_t>{1, 2});
}

TEST_CASE("all is open afterwards, also for threads that read beside launches") {
  const Started started;
  const Memory memory(64 * kPage);
  std::atomic<bool> over{false};
  std::atomic<uint64_t> turns{0};
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 3; ++seed) {
    threads.emplace_back([&, seed] {
      std::mt19937 random(seed);
      while (!over.load()) {
        const size_t offset = random() % memory.size;
        if (seed == 0) {
          memory.store(offset);
        } else {
          static_cast<void>(memory.load(offset));
        }
        ++turns;
      }
    });
  }
  const std::vector<PagesSpan> spans{memory.span(0, memory.size, 1)};
  std::vector<uint64_t> counts;
  for (int launch = 0; launch < 2'000; ++launch) {
    REQUIRE(PageWatch::instance().begin(spans.data(), 1, kPage) == PageWatch::Begin::kWatching);
    memory.store(0);
    CHECK(end(1, {kPage}, &counts).front().written_bytes >= kPage);
    for (size_t offset = 0; offset < memory.size; offset += 8 * kPage) memory.store(offset);
  }
  over = true;
  for (auto& thread : threads) thread.join();
  CHECK(turns.load() > 0);
}

TEST_CASE("a shared mapping that may only be read stays so") {
  const Started started;
  const int file = memfd_create("pages", MFD_CLOEXEC);
  REQUIRE(file >= 0);
  REQUIRE(ftruncate(file, 8 * kPage) == 0);
  char path[64];
  std::snprintf(path, sizeof path, "/proc/self/fd/%d", file);
  const int again = ::open(path, O_RDONLY);
  REQUIRE(again >= 0);
  auto* at = static_cast<volatile unsigned char*>(mmap(nullptr, 8 * kPage, PROT_READ, MAP_SHARED, again, 0));
  const auto object = reinterpret_cast<uint64_t>(at);
  const PagesSpan span{object, object, object + 8 * kPage, 1};
  REQUIRE(PageWatch::instance().begin(&span, 1, kPage) == PageWatch::Begin::kWatching);
  CHECK(at[3 * kPage] == 0);
  std::vector<uint64_t> counts;
  const auto result = end(1, {kPage}, &counts).front();
  CHECK(result.read_bytes == kPage);
  CHECK(at[5 * kPage] == 0);
  munmap(const_cast<unsigned char*>(at), 8 * kPage);
  close(again);
  close(file);
}

namespace {

sigjmp_buf jumped;
std::atomic<int> theirs{0};
void their_handler(int /*signal*/) {
  ++theirs;
  siglongjmp(jumped, 1);
}

void handle(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  REQUIRE(sigaction(SIGSEGV, &action, nullptr) == 0);
}

void crash() {
  if (sigsetjmp(jumped, 1) == 0) {
    const Memory closed(kPage, PROT_NONE);
    static_cast<void>(closed.load(0));
  }
}

}  // namespace

TEST_CASE("faults that are not ours are the program's, whoever's handler came last") {
  handle(&their_handler);
  const Memory memory(4 * kPage);
  const PagesSpan span = memory.span(0, memory.size, 1);
  std::vector<uint64_t> counts;
  {
    const Started started;
    theirs = 0;
    REQUIRE(PageWatch::instance().begin(&span, 1, kPage) == PageWatch::Begin::kWatching);
    crash();
    CHECK(theirs.load() == 1);
    end(1, {kPage}, &counts);
    // Theirs is in force now, as a crash has no other end; the next launch takes it up again.
    REQUIRE(PageWatch::instance().begin(&span, 1, kPage) == PageWatch::Begin::kWatching);
    memory.store(0);
    CHECK(end(1, {kPage}, &counts).front().distinct == kPage);
    handle(&their_handler);  // above ours
    REQUIRE(PageWatch::instance().begin(&span, 1, kPage) == PageWatch::Begin::kWatching);
    memory.store(kPage);
    CHECK(end(1, {kPage}, &counts).front().distinct == kPage);
    crash();
    CHECK(theirs.load() == 2);
  }
  handle(SIG_DFL);
}

TEST_CASE("a program that crashes dies of it, also from a signal that was sent") {
  for (const bool sent : {false, true}) {
    const pid_t child = fork();
    if (child == 0) {
      handle(SIG_DFL);  // not the test runner's, nor the sanitizer's
      PageWatch::instance().start();
      const Memory memory(4 * kPage);
      const PagesSpan span = memory.span(0, memory.size, 1);
      PageWatch::instance().begin(&span, 1, kPage);
      if (sent) raise(SIGSEGV);
      const Memory closed(kPage, PROT_NONE);
      static_cast<void>(closed.load(0));
      _exit(3);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status));
    CHECK(WTERMSIG(status) == SIGSEGV);
  }
}

TEST_CASE("a child that was forked during a launch goes on") {
  const Started started;
  const Memory memory(16 * kPage);
  const PagesSpan span = memory.span(0, memory.size, 1);
  REQUIRE(PageWatch::instance().begin(&span, 1, kPage) == PageWatch::Begin::kWatching);
  const pid_t child = fork();
  if (child == 0) {
    memory.store(0);  // closed still
    PageWatch::instance().start();
    memory.store(8 * kPage);
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  std::vector<uint64_t> counts;
  CHECK(end(1, {kPage}, &counts).front().distinct == 0);
}
