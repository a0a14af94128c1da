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

namespace leadline::nvidia {

class StreamQueues {
 public:
  static constexpr std::size_t kMost = 1024;
  static constexpr std::size_t kStreams = 4096;

  // Work on a stream, in the order of its stream; returns the depth its launch found.
  std::int64_t add(std::uint64_t stream_key, std::int64_t launched_ns, std::int64_t end_ns) {
    if (streams_.size() >= kStreams && !streams_.contains(stream_key)) forget_oldest();
    Ring& ring = streams_[stream_key];
    ring.last_use = ++uses_;
    std::int64_t depth = 0;
    const std::size_t known = std::min<std::size_t>(ring.count, kMost);
    // Ends ascend along a stream, so the waiting ones are the newest: look back until one had ended.
    while (depth < static_cast<std::int64_t>(known)) {
      const std::size_t at = (ring.count - 1 - static_cast<std::size_t>(depth)) % kMost;
      if (ring.end_ns[at] <= launched_ns) break;
      ++depth;
    }
    ring.end_ns[ring.count % kMost] = end_ns;
    ++ring.count;
    return depth;
  }

 private:
  struct Ring {
    std::array<std::int64_t, kMost> end_ns{};
    std::size_t count = 0;
    std::uint64_t last_use = 0;
  };
  void forget_oldest() {
    const auto oldest = std::min_element(streams_.begin(), streams_.end(), [](const auto& a, const auto& b) {
      return a.second.last_use < b.second.last_use;
    });
    streams_.erase(oldest);
  }

  std::unordered_map<std::uint64_t, Ring> streams_;
  std::uint64_t uses_ = 0;
};

}  // namespace leadline::nvidia
