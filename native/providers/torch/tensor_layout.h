// Where a c10::TensorImpl keeps what tells its values: in bytes from the beginning of each object, found by the
// self-test (capture/providers/torch/tensor_layout.py).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace leadline::torch {

struct TensorLayout {
  uint32_t storage = 0;  // 0: nothing is known
  uint32_t geometry = 0;
  uint32_t counter = 0;
  uint32_t type = 0;     // 0: not known
  uint32_t version = 0;  // in the counter
  uint32_t data = 0;     // in the storage
  uint32_t bytes = 0;    // in the storage
  uint32_t device = 0;   // in the storage; 0: not known
};

template <typename T>
T at(uint64_t object, uint64_t offset) noexcept {
  T value;
  std::memcpy(&value, reinterpret_cast<const char*>(object) + offset, sizeof value);
  return value;
}

// Geometry is c10::impl::SizesAndStrides with the storage's offset behind it; more dimensions stand elsewhere.
inline constexpr uint64_t kDimensions = 5;

// A tensor of an operator that runs, so that nobody frees it meanwhile.
class TensorAt {
 public:
  TensorAt(const TensorLayout& layout, uint64_t tensor) noexcept : layout_(layout), tensor_(tensor) {}

  // More than kDimensions: sizes and strides cannot be read.
  uint64_t dimensions() const noexcept { return at<uint64_t>(tensor_, layout_.geometry); }
  uint64_t size(uint64_t i) const noexcept { return at<uint64_t>(tensor_, layout_.geometry + 8 * (1 + i)); }
  uint64_t stride(uint64_t i) const noexcept {
    return at<uint64_t>(tensor_, layout_.geometry + 8 * (1 + kDimensions + i));
  }
  uint64_t offset() const noexcept { return at<uint64_t>(tensor_, layout_.geometry + 8 * (1 + 2 * kDimensions)); }
  uint64_t storage() const noexcept { return at<uint64_t>(tensor_, layout_.storage); }
  uint64_t counter() const noexcept { return at<uint64_t>(tensor_, layout_.counter); }
  uint16_t type() const noexcept { return at<uint16_t>(tensor_, layout_.type); }
  // 0 without memory.
  uint64_t data() const noexcept { return storage() == 0 ? 0 : at<uint64_t>(storage(), layout_.data); }
  uint64_t bytes() const noexcept { return at<uint64_t>(storage(), layout_.bytes); }
  // c10::Device begins with its type. Of a storage; false where that is not known.
  bool is_on_cpu() const noexcept {
    constexpr uint8_t kCpu = 0;
    return layout_.device != 0 && at<uint8_t>(storage(), layout_.device) == kCpu;
  }

 private:
  const TensorLayout& layout_;
  uint64_t tensor_;
};

}  // namespace leadline::torch
