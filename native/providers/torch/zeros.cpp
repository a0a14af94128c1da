#include "providers/torch/zeros.h"

#include "base/hash.h"

namespace leadline::torch {
namespace {

bool is_zero(const char* data, size_t width) noexcept {
  for (size_t i = 0; i < width; ++i)
    if (data[i] != 0) return false;
  return true;
}

}  // namespace

uint64_t Elements::count() const noexcept {
  uint64_t number = 1;
  for (size_t i = 0; i < dimensions; ++i) number *= sizes[i];
  return number;
}

bool mostly_zero(const Elements& elements) noexcept {
  constexpr uint64_t kLooks = 48;
  constexpr uint64_t kZeros = kLooks * 3 / 5;
  const uint64_t count = elements.count();
  if (count == 0) return false;
  uint64_t zeros = 0;
  for (uint64_t look = 0; look < kLooks; ++look) {
    uint64_t number = hash_mix(look, count) % count;  // no pattern of the tensor's has the same steps
    uint64_t element = 0;
    for (size_t i = elements.dimensions; i-- > 0;) {
      element += number % elements.sizes[i] * elements.strides[i];
      number /= elements.sizes[i];
    }
    zeros += is_zero(elements.data + element * elements.width, elements.width) ? 1 : 0;
  }
  return zeros >= kZeros;
}

}  // namespace leadline::torch
