// Distinct frames, interned by all their fields: one writer, concurrent readers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "base/chunked_array.h"
#include "base/hash.h"
#include "base/ids.h"
#include "base/index_table.h"

namespace leadline {

// What a frame is. Strings belong to the table that stands beside the frame table.
struct FrameKey {
  FrameKind kind = FrameKind::kRoot;
  StringId name = kEmptyString;    // what a person reads
  StringId file = kEmptyString;    // source file, or library of a native frame
  std::int32_t line = 0;           // line being executed, 0 where unknown
  std::int32_t first_line = 0;     // first line of the function, 0 where unknown
  StringId module = kEmptyString;  // class of a module frame, build id of a native frame
  std::uint64_t address = 0;       // offset in the library
  StringId detail = kEmptyString;  // JSON object or empty

  friend bool operator==(const FrameKey&, const FrameKey&) = default;
};

class FrameTable {
 public:
  explicit FrameTable(std::uint32_t max_frames = std::numeric_limits<std::uint32_t>::max()) noexcept
      : max_frames_(max_frames) {}

  // Writer only. Equal keys give equal ids; kNoFrame when the table is full or there is no memory.
  FrameId intern(const FrameKey& key) noexcept {
    const std::uint64_t hash = hash_of(key);
    const std::uint32_t known = index_.find(hash, [&](std::uint32_t at) { return frames_[at] == key; });
    return known != IndexTable::kAbsent ? FrameId{known} : add(key, hash);
  }

  // Any thread, for ids below size() or received from the writer.
  const FrameKey& operator[](FrameId id) const noexcept { return frames_[raw(id)]; }
  std::uint32_t size() const noexcept { return frames_.size(); }

  std::size_t held_bytes() const noexcept { return frames_.held_bytes() + index_.held_bytes(); }

 private:
  static std::uint64_t hash_of(const FrameKey& key) noexcept {
    const auto pair = [](auto high, auto low) {
      return std::uint64_t{static_cast<std::uint32_t>(high)} << 32 | static_cast<std::uint32_t>(low);
    };
    std::uint64_t hash = hash_mix(pair(key.name, key.file), pair(key.line, key.first_line));
    hash = hash_mix(hash ^ pair(key.module, key.detail), key.address + (std::uint64_t{raw(key.kind)} << 56));
    return hash;
  }
  FrameId add(const FrameKey& key, std::uint64_t hash) noexcept;

  std::uint32_t max_frames_;
  ChunkedArray<FrameKey> frames_;
  IndexTable index_;
};

}  // namespace leadline
