#include "base/string_table.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "base/hash.h"

namespace leadline {
namespace {

constexpr std::size_t kMaxBlockBytes = 256 * 1024;

std::string_view cut(std::string_view text) noexcept {
  if (text.size() <= StringTable::kMaxBytes) return text;
  std::size_t size = StringTable::kMaxBytes;
  while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xC0) == 0x80) --size;
  return text.substr(0, size);
}

}  // namespace

struct StringTable::Block {
  Block* previous;
};

StringTable::StringTable(std::uint32_t max_strings) noexcept : max_strings_(max_strings) {
  // The empty string is in no index: intern() knows it.
  entries_.emplace_back(Entry{"", 0});
}

StringTable::~StringTable() {
  while (blocks_ != nullptr) {
    Block* previous = blocks_->previous;
    ::operator delete(blocks_);
    blocks_ = previous;
  }
}

StringId StringTable::intern(std::string_view text, bool* refused) noexcept {
  if (text.empty()) return kEmptyString;
  text = cut(text);
  const std::uint64_t hash = hash_bytes(text.data(), text.size());
  const std::uint32_t known = index_.find(hash, [&](std::uint32_t at) {
    const Entry& entry = entries_[at];
    return entry.size == text.size() && std::memcmp(entry.data, text.data(), text.size()) == 0;
  });
  if (known != IndexTable::kAbsent) return StringId{known};

  const std::uint32_t number = entries_.size();
  const char* data = nullptr;
  if (number < max_strings_ && index_.reserve_one()) data = store(text);
  if (data == nullptr || entries_.emplace_back(Entry{data, static_cast<std::uint32_t>(text.size())}) == nullptr) {
    if (refused != nullptr) *refused = true;
    return kEmptyString;
  }
  index_.insert(hash, number);
  return StringId{number};
}

const char* StringTable::store(std::string_view text) noexcept {
  const std::size_t bytes = text.size() + 1;
  if (static_cast<std::size_t>(free_end_ - free_begin_) < bytes) {
    const std::size_t block_bytes = std::max(next_block_bytes_, sizeof(Block) + bytes);
    void* memory = ::operator new(block_bytes, std::nothrow);
    if (memory == nullptr) return nullptr;
    blocks_ = new (memory) Block{blocks_};
    free_begin_ = static_cast<char*>(memory) + sizeof(Block);
    free_end_ = static_cast<char*>(memory) + block_bytes;
    next_block_bytes_ = std::min(next_block_bytes_ * 2, kMaxBlockBytes);
    block_bytes_.fetch_add(block_bytes, std::memory_order_relaxed);
  }
  char* data = free_begin_;
  std::memcpy(data, text.data(), text.size());
  data[text.size()] = '\0';
  free_begin_ += bytes;
  return data;
}

std::size_t StringTable::held_bytes() const noexcept {
  return entries_.held_bytes() + index_.held_bytes() + block_bytes_.load(std::memory_order_relaxed);
}

}  // namespace leadline
