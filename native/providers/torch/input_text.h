// Shapes and types of an operator's inputs as JSON, by torch's own functions. Texts that were made once are kept, and
// found again by sizes and types. Only when the user asks for shapes.
#pragma once

#include <string>

#include "providers/torch/record_function.h"
#include "providers/torch/tensor_layout.h"

namespace leadline::torch {

class InputText {
 public:
  // Before describe(). Without a layout each text is made anew.
  static void begin(const TensorLayout& layout) noexcept;
  // Valid as long as this object, or for good where is_kept(); nullptr when there is nothing to say. `role`: a JSON
  // object of which the text gets the keys too, or nullptr. `inputs_at`: offset of the inputs in the function, 0 where
  // it is not known.
  const char* describe(const Symbols& symbols, const RecordFunction& function, const char* role,
                       uint32_t inputs_at) noexcept;
  bool is_kept() const noexcept { return kept_; }

 private:
  // Of operators of which shapes alone do not tell what they do: whether this is one.
  bool append_arguments(const Symbols& symbols, const RecordFunction& function, uint32_t inputs_at);

  std::string text_;
  bool kept_ = false;
};

}  // namespace leadline::torch
