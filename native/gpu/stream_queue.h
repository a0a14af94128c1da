// How much work a launch found waiting on its stream: earlier work of the stream that ended after the launch was
// called.
//
// One ring of end times per stream, so memory is bounded by the number of streams; depths above kMost read as kMost
// (the hardware's own queue is about that long). Streams not used for longest are forgotten first. Single-threaded.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <unordered_map>

namespace leadline::gpu {

class StreamQueues {
 public:
  static constexpr std::size_t kMost = 1024;
  static constexpr std::size_t kStreams = 4096;

  // Work on a stream; returns the depth its launch found among the work told so far. A stream's work ends in the order
  // of its launches, so what was ahead of a launch is what ended before it did, in whatever order it is told.
  std::int64_t add(std::uint64_t stream_key, std::int64_t launched_ns, std::int64_t end_ns) {
    Ring& ring = ring_of(stream_key);
    ring.last_use = ++uses_;
    const std::size_t oldest = ring.count < kMost ? 0 : ring.count + 1 - kMost;
    std::size_t at = ring.count;  // ends ascend; nearly always this one is the last
    for (; at > oldest && ring.end_of(at - 1) > end_ns; --at) ring.end_of(at) = ring.end_of(at - 1);
    ring.end_of(at) = end_ns;
    ++ring.count;
    std::size_t first = oldest;  // that had not ended at the launch
    for (std::size_t end = at; first < end;) {
      const std::size_t middle = first + (end - first) / 2;
      ring.end_of(middle) <= launched_ns ? first = middle + 1 : end = middle;
    }
    return static_cast<std::int64_t>(at - first);
  }

 private:
  struct Ring {
    std::int64_t& end_of(std::size_t number) { return end_ns[number % kMost]; }
    std::array<std::int64_t, kMost> end_ns{};
    std::size_t count = 0;
    std::uint64_t last_use = 0;
  };
  Ring& ring_of(std::uint64_t stream_key) {
    if (last_ != nullptr && last_key_ == stream_key) return *last_;
    if (streams_.size() >= kStreams && !streams_.contains(stream_key)) forget_oldest();
    last_ = &streams_[stream_key];
    last_key_ = stream_key;
    return *last_;
  }
  void forget_oldest() {
    last_ = nullptr;
    const auto oldest = std::min_element(streams_.begin(), streams_.end(), [](const auto& a, const auto& b) {
      return a.second.last_use < b.second.last_use;
    });
    streams_.erase(oldest);
  }

  std::unordered_map<std::uint64_t, Ring> streams_;  // its elements stay where they are
  Ring* last_ = nullptr;
  std::uint64_t last_key_ = 0;
  std::uint64_t uses_ = 0;
};

}  // namespace leadline::gpu
