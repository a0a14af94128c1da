// Bytes of a section, read in order; a read beyond the end gives zeros and is remembered.
#pragma once

#include <cstdint>
#include <cstring>

namespace leadline::unwind {

class Bytes {
 public:
  Bytes(uintptr_t at, uintptr_t end) noexcept : at_(at), end_(end) {}
  bool failed() const noexcept { return failed_; }
  bool more() const noexcept { return !failed_ && at_ < end_; }
  uintptr_t at() const noexcept { return at_; }

  template <typename T>
  T take() noexcept {
    T value{};
    if (failed_ || end_ - at_ < sizeof(T) || at_ > end_) {
      failed_ = true;
      return value;
    }
    std::memcpy(&value, reinterpret_cast<const void*>(at_), sizeof(T));
    at_ += sizeof(T);
    return value;
  }
  uint64_t unsigned_leb() noexcept {
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const auto byte = take<uint8_t>();
      if (failed_) return 0;
      if (shift < 64) value |= uint64_t{byte & 0x7fu} << shift;
      if ((byte & 0x80) == 0) return value;
    }
  }
  int64_t signed_leb() noexcept {
    uint64_t value = 0;
    for (unsigned shift = 0;;) {
      const auto byte = take<uint8_t>();
      if (failed_) return 0;
      if (shift < 64) value |= uint64_t{byte & 0x7fu} << shift;
      shift += 7;
      if ((byte & 0x80) != 0) continue;
      if (shift < 64 && (byte & 0x40) != 0) value |= ~uint64_t{0} << shift;
      return static_cast<int64_t>(value);
    }
  }
  void skip(uint64_t count) noexcept {
    if (failed_ || count > end_ - at_) {
      failed_ = true;
    } else {
      at_ += count;
    }
  }
  // A pointer in one of the encodings of DW_EH_PE; `data`: what "relative to data" means. Encodings that need more are
  // a failure.
  uintptr_t pointer(uint8_t encoding, uintptr_t data) noexcept {
    if (encoding == 0xff) return 0;
    const uintptr_t here = at_;
    uintptr_t value = 0;
    switch (encoding & 0x0f) {
      case 0x00:
      case 0x04:
      case 0x0c:
        value = take<uint64_t>();
        break;
      case 0x01:
        value = unsigned_leb();
        break;
      case 0x02:
        value = take<uint16_t>();
        break;
      case 0x03:
        value = take<uint32_t>();
        break;
      case 0x09:
        value = static_cast<uintptr_t>(signed_leb());
        break;
      case 0x0a:
        value = static_cast<uintptr_t>(int64_t{take<int16_t>()});
        break;
      case 0x0b:
        value = static_cast<uintptr_t>(int64_t{take<int32_t>()});
        break;
      default:
        failed_ = true;
    }
    switch (encoding & 0x70) {
      case 0x00:
        break;
      case 0x10:
        value += here;
        break;
      case 0x30:
        value += data;
        break;
      default:
        failed_ = true;
    }
    if ((encoding & 0x80) != 0) failed_ = true;  // through memory that may not be there
    return failed_ ? 0 : value;
  }

 private:
  uintptr_t at_;
  uintptr_t end_;
  bool failed_ = false;
};

}  // namespace leadline::unwind
