// Samples on their way from a signal handler to the thread that books them: one writer, one reader, words in a circle.
//
// A sample is written whole or not at all. No lock, no allocation after construction.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace leadline::cpu {

class SampleRing {
 public:
  // `words`: a power of two. Throws std::bad_alloc.
  explicit SampleRing(size_t words) : words_(new uint64_t[words]), mask_(words - 1) {}

  // Writer. Room for a sample of so many words, the first of which says how many; false: there is none.
  bool begin(size_t words) noexcept {
    const uint64_t written = written_.load(std::memory_order_relaxed);
    if (words > mask_ + 1 - (written - read_.load(std::memory_order_acquire))) return false;
    at_ = written;
    put(words);
    return true;
  }
  void put(uint64_t word) noexcept { words_[at_++ & mask_] = word; }
  void end() noexcept { written_.store(at_, std::memory_order_release); }

  // Reader. False when there is none. Throws std::bad_alloc.
  bool take(std::vector<uint64_t>* sample) {
    const uint64_t read = read_.load(std::memory_order_relaxed);
    if (read == written_.load(std::memory_order_acquire)) return false;
    const uint64_t count = words_[read & mask_];
    sample->resize(count - 1);
    for (uint64_t i = 1; i < count; ++i) (*sample)[i - 1] = words_[(read + i) & mask_];
    read_.store(read + count, std::memory_order_release);
    return true;
  }

 private:
  std::unique_ptr<uint64_t[]> words_;  // not touched before it is needed
  uint64_t mask_;
  uint64_t at_ = 0;  // writer, between begin() and end()
  std::atomic<uint64_t> written_{0};
  std::atomic<uint64_t> read_{0};
};

}  // namespace leadline::cpu
