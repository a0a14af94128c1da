#include "providers/torch/input_text.h"

#include <cstring>
#include <string_view>

#include "providers/torch/json_text.h"
#include "providers/torch/old_string_types.h"

namespace leadline::torch {
const char* InputText::describe(const Symbols& symbols, const RecordFunction& function, const char* role) noexcept {
  try {
    const Shapes shapes = symbols.input_shapes(function, false);
    text_ = role == nullptr ? "{" : std::string_view(role, std::strlen(role) - 1);
    if (role != nullptr) text_ += ", ";
    text_ += "\"shapes\": [";
    for (size_t i = 0; i < shapes.size(); ++i) {
      text_ += i == 0 ? "[" : ", [";
      for (size_t j = 0; j < shapes[i].size(); ++j) {
        if (j != 0) text_ += ", ";
        text_ += std::to_string(shapes[i][j]);
      }
      text_ += "]";
    }
    text_ += "]";
    if (symbols.input_types != nullptr || symbols.old_input_types != nullptr) {
      Types types;
      if (symbols.input_types != nullptr) {
        types = symbols.input_types(function);
      } else {
        const auto add = [](void* to, const char* type) { static_cast<Types*>(to)->emplace_back(type); };
        old_string_types(symbols.old_input_types, &function, add, &types);
      }
      text_ += ", \"types\": [";
      for (size_t i = 0; i < types.size(); ++i) {
        text_ += i == 0 ? "\"" : ", \"";
        append_escaped(&text_, types[i]);
        text_ += "\"";
      }
      text_ += "]";
    }
    text_ += "}";
    return text_.c_str();
  } catch (...) {
    return role;
  }
}

}  // namespace leadline::torch
