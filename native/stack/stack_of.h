// A stack of plain values that every event pushes to and cuts: cutting is one store, and memory is kept for the next
// push. Throws std::bad_alloc when it must grow and cannot; then it is as it was.
#pragma once

#include <cstddef>
#include <iterator>
#include <memory>
#include <new>
#include <type_traits>

namespace leadline {

template <typename T>
class StackOf {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  StackOf() = default;
  StackOf(const StackOf&) = delete;
  StackOf& operator=(const StackOf&) = delete;
  ~StackOf() { std::allocator<T>().deallocate(begin_, room_); }

  void reserve(size_t room) {
    if (room > room_) grow(room);
  }
  T& push_back(const T& value) {
    if (size_ == room_) [[unlikely]] {
      const T kept = value;  // it may be one of ours
      grow(room_ == 0 ? 16 : room_ * 2);
      ++size_;
      return *std::construct_at(end_++, kept);
    }
    ++size_;
    return *std::construct_at(end_++, value);
  }
  T& emplace_back() {
    if (size_ == room_) [[unlikely]]
      grow(room_ == 0 ? 16 : room_ * 2);
    ++size_;
    // Without brackets: those would clear all of it before its members get their values.
    return *::new (static_cast<void*>(end_++)) T;
  }
  void pop_back() noexcept {
    --size_;
    --end_;
  }
  // Drops what lies above the first `size`, of which there are as many.
  void cut(size_t size) noexcept {
    size_ = size;
    end_ = begin_ + size;
  }
  void clear() noexcept { cut(0); }

  size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  T* data() noexcept { return begin_; }
  const T* data() const noexcept { return begin_; }
  T& operator[](size_t at) noexcept { return begin_[at]; }
  const T& operator[](size_t at) const noexcept { return begin_[at]; }
  T& back() noexcept { return end_[-1]; }
  const T& back() const noexcept { return end_[-1]; }
  T* begin() noexcept { return begin_; }
  T* end() noexcept { return end_; }
  const T* begin() const noexcept { return begin_; }
  const T* end() const noexcept { return end_; }
  auto rbegin() noexcept { return std::make_reverse_iterator(end()); }
  auto rend() noexcept { return std::make_reverse_iterator(begin()); }

 private:
  [[gnu::noinline, gnu::cold]] void grow(size_t room) {
    T* const grown = std::allocator<T>().allocate(room);
    for (size_t i = 0; i < size_; ++i) std::construct_at(grown + i, begin_[i]);
    std::allocator<T>().deallocate(begin_, room_);
    begin_ = grown;
    end_ = grown + size_;
    room_ = room;
  }

  T* begin_ = nullptr;
  T* end_ = nullptr;  // kept beside the size: the innermost one is asked for most of all
  size_t size_ = 0;
  size_t room_ = 0;
};

}  // namespace leadline
