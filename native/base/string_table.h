// Interned strings: one writer, concurrent readers, string 0 is empty, every string ends with a NUL that is not
// counted.
//
// Bounded: a string is cut at kMaxBytes (at a UTF-8 border) and the table refuses new ones beyond its limit.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

#include "base/chunked_array.h"
#include "base/ids.h"
#include "base/index_table.h"

namespace leadline {

class StringTable {
 public:
  static constexpr std::size_t kMaxBytes = 64 * 1024;

  explicit StringTable(std::uint32_t max_strings = std::numeric_limits<std::uint32_t>::max()) noexcept;
  ~StringTable();
  StringTable(const StringTable&) = delete;
  StringTable& operator=(const StringTable&) = delete;

  // Writer only. Equal contents give equal ids. When the table is full or there is no memory: kEmptyString, and
  // *refused (where given) becomes true.
  StringId intern(std::string_view text, bool* refused = nullptr) noexcept;

  // Any thread, for ids below size() or received from the writer.
  std::string_view text(StringId id) const noexcept {
    const Entry& entry = entries_[raw(id)];
    return {entry.data, entry.size};
  }
  std::uint32_t size() const noexcept { return entries_.size(); }

  std::size_t held_bytes() const noexcept;

 private:
  struct Entry {
    const char* data;
    std::uint32_t size;
  };
  struct Block;  // header of a piece of arena

  const char* store(std::string_view text) noexcept;

  std::uint32_t max_strings_;
  ChunkedArray<Entry> entries_;
  IndexTable index_;
  Block* blocks_ = nullptr;
  char* free_begin_ = nullptr;
  char* free_end_ = nullptr;
  std::size_t next_block_bytes_ = 1024;
  std::atomic<std::size_t> block_bytes_{0};
};

}  // namespace leadline
