// Whether a tensor consists mostly of zeros: weights that discard most of what is multiplied with them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "providers/torch/tensor_layout.h"

namespace leadline::torch {

// Elements of a tensor in memory of the CPU; sizes and strides in elements.
struct Elements {
  const char* data = nullptr;
  size_t width = 0;
  size_t dimensions = 0;
  std::array<uint64_t, kDimensions> sizes{};
  std::array<uint64_t, kDimensions> strides{};

  uint64_t count() const noexcept;
};

// By some of its elements, chosen anywhere in it: at least three of five are zero.
bool mostly_zero(const Elements& elements) noexcept;

}  // namespace leadline::torch
