// The memory blocks that were alive at one moment, by address: finds the block that any address lies in.
//
// Does not change, so any number of threads may look up without a lock; MemoryLedger::changes() tells when to take a
// new one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/ids.h"

namespace leadline {

struct LiveRange {
  std::uint64_t address;
  std::int64_t bytes;
  std::int16_t device;
  ThreadIndex thread;  // whose node owns it
  NodeId node;
};

class LiveRanges {
 public:
  LiveRanges() = default;
  explicit LiveRanges(std::vector<LiveRange> ranges) : ranges_(std::move(ranges)) {
    std::sort(ranges_.begin(), ranges_.end(),
              [](const LiveRange& a, const LiveRange& b) { return a.address < b.address; });
  }

  // The block with first byte <= address < end, or nullptr.
  const LiveRange* find(std::uint64_t address) const noexcept {
    const auto after = std::upper_bound(ranges_.begin(), ranges_.end(), address,
                                        [](std::uint64_t at, const LiveRange& range) { return at < range.address; });
    if (after == ranges_.begin()) return nullptr;
    const LiveRange& range = *(after - 1);
    return address - range.address < static_cast<std::uint64_t>(range.bytes) ? &range : nullptr;
  }
  const std::vector<LiveRange>& all() const noexcept { return ranges_; }

 private:
  std::vector<LiveRange> ranges_;
};

}  // namespace leadline
