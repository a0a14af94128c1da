// Activity buffers as CUPTI 13 has them: one for each thread, asked for inside the launch that needs it, handed over
// when it is full and all of its records are complete, or by a flush when all are complete. For tests that ask for it
// (Delivery::per_thread); elsewhere records are delivered in an order that the test sets.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <thread>
#include <vector>

#include "providers/nvidia/cupti_abi.h"

namespace leadline::testing {

class FakeGpu;

class FakeBuffers {
 public:
  explicit FakeBuffers(FakeGpu& gpu) : gpu_(gpu) {}

  // Of the calling thread; `end_ns`: when the record is complete.
  void append(const std::vector<std::uint8_t>& record, std::int64_t end_ns);
  // Hands over what is complete; `forced`: everything, with only those records that are.
  void flush(bool forced);
  std::size_t pending() const;
  // Into the buffers that CUPTI has kept, as it may at any time.
  void write_to_kept();
  void reset();

  std::size_t kept = 0;          // buffers that no flush hands over, a test's wish
  std::size_t refused = 0;       // requests that were answered with nothing
  bool wants_zeros = false;      // the tool provides buffers that are all zeros
  std::size_t dirty = 0;         // that were not
  std::size_t most_records = 0;  // in a buffer; 0: as many as it holds

 private:
  struct Buffer {
    std::uint8_t* data = nullptr;
    std::size_t size = 0;
    std::size_t used = 0;
    std::vector<std::pair<std::size_t, std::int64_t>> records;  // size, end
    bool is_full = false;
  };
  bool request(Buffer* buffer);
  bool is_complete(const Buffer& buffer) const;
  void hand_over(Buffer& buffer, std::int64_t until_ns);

  FakeGpu& gpu_;
  std::map<std::thread::id, std::deque<Buffer>> buffers_;  // the last is the one that is written to
  std::vector<Buffer> kept_;
};

}  // namespace leadline::testing
