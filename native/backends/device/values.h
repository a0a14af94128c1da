// Floating-point values that are stored, by their bits: which are not finite, and each for the text of a user.
#pragma once

#include "backends/device/tracker.h"

namespace leadline::device {
namespace {

struct Bits {
  u64 bits;
  u64 exponent;  // all ones: not finite
  u64 fraction;
};

LEADLINE_DEVICE inline u32 element_bytes(u32 element) {
  return element == kFloat32 ? 4 : element == kFloat64 ? 8 : element == kOther ? 0 : 2;
}

// `data` is aligned to the access, which is of 1, 2, 4, 8 or 16 bytes.
LEADLINE_DEVICE inline Bits bits_of(const void* data, u32 index, u32 element) {
  switch (element) {
    case kFloat32:
      return {static_cast<const u32*>(data)[index], 0x7f800000u, 0x007fffffu};
    case kFloat64: {
      const u32* half = static_cast<const u32*>(data) + 2 * index;
      return {half[0] | u64{half[1]} << 32, 0x7ff0000000000000ull, 0x000fffffffffffffull};
    }
    case kFloat16:
      return {static_cast<const u16*>(data)[index], 0x7c00u, 0x03ffu};
    default:
      return {static_cast<const u16*>(data)[index], 0x7f80u, 0x007fu};
  }
}

LEADLINE_DEVICE inline double value_of(const Bits& value, u32 element) {
  union {
    u32 bits;
    float value;
  } narrow;
  union {
    u64 bits;
    double value;
  } wide;
  switch (element) {
    case kFloat64:
      wide.bits = value.bits;
      return wide.value;
    case kFloat16: {
      const u32 sign = static_cast<u32>(value.bits & 0x8000u) << 16;
      const u32 rest = static_cast<u32>(value.bits & 0x7fffu);
      if (rest >= 0x7c00u) {
        narrow.bits = sign | 0x7f800000u | (rest & 0x3ffu) << 13;
        return narrow.value;
      }
      if (rest >= 0x400u) {
        narrow.bits = sign | ((rest << 13) + (112u << 23));
        return narrow.value;
      }
      return (sign != 0 ? -1.0 : 1.0) * rest / 16777216.0;  // below 2^-14 in steps of 2^-24
    }
    case kBfloat16:
      narrow.bits = static_cast<u32>(value.bits) << 16;
      return narrow.value;
    default:
      narrow.bits = static_cast<u32>(value.bits);
      return narrow.value;
  }
}

}  // namespace
}  // namespace leadline::device
