// Arguments of an operator as torch hands them to who asks for inputs: c10::IValue, a payload and a tag
// (ATen/core/ivalue.h of torch 2.4 to 2.13).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "providers/torch/record_function.h"

namespace leadline::torch {

struct Value {
  uint64_t payload;
  uint32_t tag;
};
static_assert(sizeof(Value) == 16);
inline constexpr uint32_t kNothing = 0;
inline constexpr uint32_t kTensor = 1;
inline constexpr uint32_t kDouble = 3;
inline constexpr uint32_t kInteger = 5;

// c10::ArrayRef
struct Values {
  const Value* first = nullptr;
  size_t count = 0;

  static Values of(const RecordFunction& function, uint32_t inputs_at) noexcept {
    Values found;
    std::memcpy(&found, reinterpret_cast<const char*>(&function) + inputs_at, sizeof found);
    return found;
  }
};

}  // namespace leadline::torch
