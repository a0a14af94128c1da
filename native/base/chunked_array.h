// An append-only array whose elements never move: one writer, any number of concurrent readers, no lock.
//
// Chunk k holds kFirst * 2^k elements, so an index becomes (chunk, offset) with one bit scan and a small array stays
// small. Readers may use every element below size(). Allocation failure is reported, never thrown.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

namespace leadline {

template <class T, std::uint32_t kFirst = 64>
class ChunkedArray {
  static_assert(std::has_single_bit(kFirst));

 public:
  ChunkedArray() = default;
  ChunkedArray(const ChunkedArray&) = delete;
  ChunkedArray& operator=(const ChunkedArray&) = delete;
  ~ChunkedArray() {
    std::size_t left = size();
    for (std::uint32_t chunk = 0; chunk < kChunks; ++chunk) {
      T* const memory = chunks_[chunk].load(std::memory_order_relaxed);
      if (memory == nullptr) return;
      const std::size_t used = std::min(left, chunk_elements(chunk));
      std::destroy_n(memory, used);
      left -= used;
      ::operator delete (memory, std::align_val_t{alignof(T)});
    }
  }

  // Number of elements; everything below it may be read by any thread.
  std::uint32_t size() const noexcept { return size_.load(std::memory_order_acquire); }
  bool empty() const noexcept { return size() == 0; }

  T& operator[](std::uint32_t index) noexcept { return *slot(index); }
  const T& operator[](std::uint32_t index) const noexcept { return *slot(index); }

  // Writer only. The new element, visible to readers when this returns, or nullptr when there is no memory.
  template <class... Args>
  T* emplace_back(Args&&... args) noexcept {
    const std::uint32_t index = size_.load(std::memory_order_relaxed);
    if (index == kMax || !reserve_chunk(chunk_of(index))) return nullptr;
    T* element = ::new (static_cast<void*>(slot(index))) T{std::forward<Args>(args)...};
    size_.store(index + 1, std::memory_order_release);
    return element;
  }

  // Memory taken from the allocator.
  std::size_t held_bytes() const noexcept {
    std::size_t bytes = 0;
    for (std::uint32_t chunk = 0; chunk < kChunks; ++chunk) {
      if (chunks_[chunk].load(std::memory_order_relaxed) != nullptr) bytes += sizeof(T) * chunk_elements(chunk);
    }
    return bytes;
  }

 private:
  static constexpr std::uint32_t kFirstBits = static_cast<std::uint32_t>(std::countr_zero(kFirst));
  static constexpr std::uint32_t kChunks = 31 - kFirstBits;
  static constexpr std::uint32_t kMax = (std::uint32_t{1} << 31) - kFirst;

  static std::uint32_t chunk_of(std::uint32_t index) noexcept {
    // In whole chunks of the first size, so that nothing can wrap around and the compiler knows that it cannot.
    return static_cast<std::uint32_t>(std::bit_width(index / kFirst + 1)) - 1;
  }
  static std::size_t chunk_elements(std::uint32_t chunk) noexcept { return std::size_t{kFirst} << chunk; }

  T* slot(std::uint32_t index) const noexcept {
    const std::uint32_t chunk = chunk_of(index);
    // Relaxed is enough: a reader knows the index from an acquire (of size() or of whatever handed it the id).
    return chunks_[chunk].load(std::memory_order_relaxed) + (index + kFirst - (kFirst << chunk));
  }

  bool reserve_chunk(std::uint32_t chunk) noexcept {
    if (chunks_[chunk].load(std::memory_order_relaxed) != nullptr) return true;
    void* memory = ::operator new (sizeof(T) * chunk_elements(chunk), std::align_val_t{alignof(T)}, std::nothrow);
    chunks_[chunk].store(static_cast<T*>(memory), std::memory_order_release);
    return memory != nullptr;
  }

  std::array<std::atomic<T*>, kChunks> chunks_{};
  std::atomic<std::uint32_t> size_{0};
};

}  // namespace leadline
