// Samples on their way from one thread to another: whole, in order, none twice; what does not fit is refused whole.
#include "providers/cpu/sample_ring.h"

#include <doctest/doctest.h>

#include <thread>

using leadline::cpu::SampleRing;

namespace {

// A sample of `size` words of which every one says which sample it is.
bool put(SampleRing& ring, uint64_t number, uint64_t size) {
  if (!ring.begin(size + 1)) return false;
  for (uint64_t i = 0; i < size; ++i) ring.put(number * 1000 + i);
  ring.end();
  return true;
}

bool is(const std::vector<uint64_t>& sample, uint64_t number, uint64_t size) {
  if (sample.size() != size) return false;
  for (uint64_t i = 0; i < size; ++i) {
    if (sample[i] != number * 1000 + i) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("samples come out as they went in, and a full ring refuses") {
  SampleRing ring(64);
  std::vector<uint64_t> sample;
  CHECK_FALSE(ring.take(&sample));
  CHECK_FALSE(put(ring, 1, 64));  // never fits
  uint64_t written = 0;
  uint64_t read = 0;
  for (int round = 0; round < 500; ++round) {
    while (put(ring, written, written % 13)) ++written;
    CHECK(written - read > 2);
    for (int i = 0; i < 2; ++i, ++read) {
      REQUIRE(ring.take(&sample));
      REQUIRE(is(sample, read, read % 13));
    }
  }
}

TEST_CASE("one thread writes while another reads") {
  SampleRing ring(256);
  constexpr uint64_t kSamples = 200'000;
  std::thread writer([&] {
    for (uint64_t number = 0; number < kSamples;) {
      if (put(ring, number, number % 40)) {
        ++number;
      } else {
        std::this_thread::yield();
      }
    }
  });
  std::vector<uint64_t> sample;
  for (uint64_t number = 0; number < kSamples;) {
    if (!ring.take(&sample)) {
      std::this_thread::yield();
      continue;
    }
    REQUIRE(is(sample, number, number % 40));
    ++number;
  }
  writer.join();
}
