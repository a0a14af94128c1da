#include "cct/frame_table.h"

namespace leadline {

FrameId FrameTable::add(const FrameKey& key, std::uint64_t hash) noexcept {
  const std::uint32_t number = frames_.size();
  if (number >= max_frames_) return kNoFrame;
  if (!index_.reserve_one()) return kNoFrame;
  if (frames_.emplace_back(key) == nullptr) return kNoFrame;
  index_.insert(hash, number);
  return FrameId{number};
}

}  // namespace leadline
