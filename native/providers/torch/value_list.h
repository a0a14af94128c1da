// What a list among an operator's arguments holds: c10::detail::ListImpl, whose vector of values follows its
// table of methods and its reference count; the offset differs between releases of torch.
#pragma once

#include <cstdint>

#include "providers/torch/value.h"

namespace leadline::torch {

class ValueList {
 public:
  // `list`: payload of a value that is a list of one number, `element`. False where no vector of it is found.
  static bool learn(uint64_t list, uint64_t element) noexcept;
  static bool known() noexcept;
  // Once that is known.
  static Values of(uint64_t list) noexcept;
};

}  // namespace leadline::torch
