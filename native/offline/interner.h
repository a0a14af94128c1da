// Equal texts once, by number in the order of their first use. Open addressing over one arena.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace leadline::offline {

class Interner {
 public:
  int32_t row(std::string_view text) {
    if ((rows_.size() + 1) * 2 > slots_.size()) grow();
    const uint64_t hash = hash_of(text);
    const size_t slot = find(text, hash);
    if (slots_[slot] < 0) {
      slots_[slot] = static_cast<int32_t>(rows_.size());
      rows_.push_back({hash, arena_.size(), text.size()});
      arena_.append(text);
    }
    return slots_[slot];
  }
  size_t size() const noexcept { return rows_.size(); }
  std::string_view text(size_t row) const noexcept {
    return std::string_view(arena_).substr(rows_[row].begin, rows_[row].size);
  }

 private:
  struct Row {
    uint64_t hash;
    size_t begin, size;
  };

  static uint64_t hash_of(std::string_view text) noexcept {
    constexpr uint64_t kMix = 0x9E3779B97F4A7C15;
    uint64_t hash = text.size() * kMix;
    const char* at = text.data();
    size_t left = text.size();
    for (uint64_t word = 0; left > 0; at += 8) {
      const size_t taken = left < 8 ? left : 8;
      word = 0;
      std::memcpy(&word, at, taken);
      hash = (hash ^ word) * kMix;
      hash ^= hash >> 29;
      left -= taken;
    }
    return hash ^ (hash >> 32);
  }
  size_t find(std::string_view text, uint64_t hash) const noexcept {
    const size_t mask = slots_.size() - 1;
    size_t slot = hash & mask;
    while (slots_[slot] >= 0) {
      const Row& row = rows_[static_cast<size_t>(slots_[slot])];
      if (row.hash == hash && this->text(static_cast<size_t>(slots_[slot])) == text) break;
      slot = (slot + 1) & mask;
    }
    return slot;
  }
  void grow() {
    slots_.assign(slots_.empty() ? 256 : slots_.size() * 2, -1);
    const size_t mask = slots_.size() - 1;
    for (size_t row = 0; row < rows_.size(); ++row) {
      size_t slot = rows_[row].hash & mask;
      while (slots_[slot] >= 0) slot = (slot + 1) & mask;
      slots_[slot] = static_cast<int32_t>(row);
    }
  }

  std::string arena_;
  std::vector<Row> rows_;
  std::vector<int32_t> slots_;
};

}  // namespace leadline::offline
