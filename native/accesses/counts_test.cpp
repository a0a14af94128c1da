// Accesses of random places and sizes against a slow reference, over several threads; edges, gaps and overlong
// accesses.
#include "accesses/counts.h"

#include <doctest/doctest.h>

#include <random>
#include <set>
#include <thread>
#include <vector>

using namespace leadline::accesses;

namespace {

struct Access {
  uint64_t address;
  size_t bytes;
  bool write;
};

struct Expected {
  uint64_t bytes[2] = {0, 0};
  uint64_t calls[2] = {0, 0};
  std::set<uint64_t> units[2];
};

std::vector<SpanResult> end(size_t spans, const std::vector<uint64_t>& pages, std::vector<uint64_t>* counts,
                            uint64_t* outside) {
  std::vector<SpanResult> results(spans);
  counts->assign(spans * pages.size(), 0);
  *outside = Launch::instance().end(results.data(), pages.data(), pages.size(), counts->data());
  return results;
}

}  // namespace

TEST_CASE("random accesses of several threads equal a slow reference") {
  std::mt19937_64 random(7);
  const std::vector<uint64_t> page_sizes{256, 4096, 65536};
  for (int round = 0; round < 6; ++round) {
    std::vector<uint64_t> spans;
    uint64_t at = 0x7f0000000000 + random() % 4096 * 4;
    const size_t count = 1 + random() % 12;
    for (size_t i = 0; i < count; ++i) {
      const uint64_t size = (1 + random() % (i % 3 == 0 ? 400'000 : 3'000)) * 4;
      spans.push_back(at);
      spans.push_back(at + size);
      at += size + (i % 2 == 0 ? 0 : random() % 200'000 * 4);  // neighbours, and gaps
    }
    std::vector<Expected> expected(count);
    uint64_t expected_outside = 0;
    std::vector<std::vector<Access>> of_thread(3);
    for (auto& accesses : of_thread) {
      for (int i = 0; i < 20'000; ++i) {
        const size_t bytes = size_t{4} << random() % 5;
        const bool hit = random() % 10 != 0;
        const size_t one = random() % count;
        const uint64_t size = spans[2 * one + 1] - spans[2 * one];
        uint64_t address = spans[2 * one] + (bytes <= size ? random() % ((size - bytes) / 4 + 1) * 4 : 0);
        if (!hit) address = random() % 2 == 0 ? spans.back() + random() % 100'000 : spans[0] - 64 - random() % 1000;
        const bool write = random() % 3 == 0;
        accesses.push_back({address, bytes, write});
        size_t in = count;
        for (size_t s = 0; s < count; ++s)
          if (address >= spans[2 * s] && address < spans[2 * s + 1]) in = s;
        if (in == count) {
          expected_outside += bytes;
          continue;
        }
        expected[in].bytes[write] += bytes;
        ++expected[in].calls[write];
        for (uint64_t unit = address; unit < address + bytes && unit < spans[2 * in + 1]; unit += 4)
          expected[in].units[write].insert(unit - spans[2 * in]);
      }
    }
    REQUIRE(Launch::instance().begin(spans.data(), count));
    std::vector<std::thread> threads;
    for (const auto& accesses : of_thread)
      threads.emplace_back([&accesses] {
        for (const Access& one : accesses)
          Launch::instance().take(reinterpret_cast<void*>(one.address), one.bytes, one.write);
      });
    for (std::thread& thread : threads) thread.join();
    std::vector<uint64_t> pages;
    uint64_t outside = 0;
    const auto results = end(count, page_sizes, &pages, &outside);
    CHECK(outside == expected_outside);
    for (size_t i = 0; i < count; ++i) {
      CHECK(results[i].read_bytes == expected[i].bytes[0]);
      CHECK(results[i].written_bytes == expected[i].bytes[1]);
      CHECK(results[i].loads == expected[i].calls[0]);
      CHECK(results[i].stores == expected[i].calls[1]);
      CHECK(results[i].read_distinct == expected[i].units[0].size() * 4);
      CHECK(results[i].written_distinct == expected[i].units[1].size() * 4);
      std::set<uint64_t> both = expected[i].units[0];
      both.insert(expected[i].units[1].begin(), expected[i].units[1].end());
      CHECK(results[i].distinct == both.size() * 4);
      CHECK(results[i].first == (both.empty() ? 0 : *both.begin()));
      CHECK(results[i].end == (both.empty() ? 0 : *both.rbegin() + 4));
      for (size_t s = 0; s < page_sizes.size(); ++s) {
        std::set<uint64_t> touched;
        for (const uint64_t unit : both) touched.insert(unit / page_sizes[s]);
        CHECK(pages[i * page_sizes.size() + s] == touched.size());
      }
    }
  }
}

TEST_CASE("a page in no span is remembered as such, one that a span begins or ends in is not") {
  const uint64_t page = 0x7f0000000000;
  Launch& launch = Launch::instance();
  const auto take = [&](uint64_t at) { launch.take(reinterpret_cast<void*>(at), 4, false); };
  const std::vector<uint64_t> spans{page + 4096 + 64, page + 4096 + 128, page + 3 * 4096, page + 3 * 4096 + 256};
  std::vector<uint64_t> pages;
  uint64_t outside = 0;
  REQUIRE(launch.begin(spans.data(), 2));
  for (int turn = 0; turn < 3; ++turn) {
    for (const uint64_t at : {page, page + 4096, page + 4096 + 128, page + 2 * 4096, page + 3 * 4096 + 256}) take(at);
    take(page + 4096 + 64);
    take(page + 3 * 4096);
  }
  auto results = end(2, {4096}, &pages, &outside);
  CHECK(outside == 3 * 5 * 4);
  CHECK(results[0].loads == 3);
  CHECK(results[1].loads == 3);
  // The next launch has a tensor where there was none.
  const std::vector<uint64_t> other{page, page + 4096};
  REQUIRE(launch.begin(other.data(), 1));
  take(page);
  results = end(1, {4096}, &pages, &outside);
  CHECK(results[0].loads == 1);
  CHECK(outside == 0);
}

TEST_CASE("nothing is counted outside of a launch, in a second one, or with too many spans") {
  std::vector<char> memory(4096);
  const auto from = reinterpret_cast<uint64_t>(memory.data());
  const std::vector<uint64_t> spans{from, from + memory.size()};
  Launch& launch = Launch::instance();
  launch.take(memory.data(), 4, true);
  REQUIRE(launch.begin(spans.data(), 1));
  CHECK_FALSE(launch.begin(spans.data(), 1));
  launch.take(memory.data() + 4092, 64, true);  // over the end
  launch.take(memory.data() + 8, 0, false);
  std::vector<uint64_t> pages;
  uint64_t outside = 0;
  const auto results = end(1, {4096}, &pages, &outside);
  CHECK(results[0].stores == 1);
  CHECK(results[0].written_bytes == 64);
  CHECK(results[0].loads == 1);
  CHECK(results[0].end == 4096);
  CHECK(pages[0] >= 1);
  const std::vector<uint64_t> many(2 * (kMostSpans + 1), 0);
  CHECK_FALSE(launch.begin(many.data(), kMostSpans + 1));
  launch.take(memory.data(), 4, true);
  REQUIRE(launch.begin(spans.data(), 1));
  CHECK(end(1, {4096}, &pages, &outside)[0].distinct == 0);
}
