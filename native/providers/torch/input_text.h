// Shapes and types of an operator's inputs as JSON, by torch's own functions. Slow: only when the user asks for shapes.
#pragma once

#include <string>

#include "providers/torch/record_function.h"

namespace leadline::torch {

class InputText {
 public:
  // Valid as long as this object; nullptr when there is nothing to say. `role`: a JSON object of which the text gets
  // the keys too, or nullptr. `inputs_at`: offset of the inputs in the function, 0 where it is not known.
  const char* describe(const Symbols& symbols, const RecordFunction& function, const char* role,
                       uint32_t inputs_at) noexcept;

 private:
  void append_arguments(const Symbols& symbols, const RecordFunction& function, uint32_t inputs_at);

  std::string text_;
};

}  // namespace leadline::torch
