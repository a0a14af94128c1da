// Headers of NumPy's .npy format, version 1.0: one-dimensional little-endian columns whose data begins at a multiple
// of 64.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace leadline {

// NumPy's name of a column type.
template <class T>
constexpr std::string_view npy_type() noexcept {
  static_assert(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>);
  if constexpr (std::is_floating_point_v<T>) {
    return sizeof(T) == 8 ? "<f8" : "<f4";
  } else {
    constexpr bool kSigned = std::is_signed_v<T>;
    switch (sizeof(T)) {
      case 1:
        return kSigned ? "|i1" : "|u1";
      case 2:
        return kSigned ? "<i2" : "<u2";
      case 4:
        return kSigned ? "<i4" : "<u4";
      default:
        return kSigned ? "<i8" : "<u8";
    }
  }
}

inline std::string npy_header(std::string_view type, std::uint64_t rows) {
  constexpr std::size_t kPreamble = 10;  // magic, version, length of the rest
  constexpr std::size_t kAlignment = 64;
  std::string description =
      "{'descr': '" + std::string(type) + "', 'fortran_order': False, 'shape': (" + std::to_string(rows) + ",), }";
  const std::size_t unpadded = kPreamble + description.size() + 1;
  description.append((kAlignment - unpadded % kAlignment) % kAlignment, ' ');
  description += '\n';
  std::string header("\x93NUMPY\x01\x00", 8);
  header += static_cast<char>(description.size() & 0xFF);
  header += static_cast<char>(description.size() >> 8);
  return header + description;
}

}  // namespace leadline
