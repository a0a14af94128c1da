#include "providers/torch/input_text.h"

#include <cstring>
#include <string_view>

#include "providers/torch/json_text.h"
#include "providers/torch/old_string_types.h"

namespace leadline::torch {
namespace {

// Operators of which shapes alone do not tell what they do, by how many arguments they have. Those from the fourth on
// are numbers: stride, padding, dilation and so on.
size_t arguments_of(std::string_view name) {
  if (name == "aten::convolution") return 9;
  if (name == "aten::convolution_backward") return 11;
  return 0;
}

// c10::IValue: a payload and a tag, of which 1 is a tensor (ATen/core/ivalue.h of torch 2.4 to 2.13).
struct Value {
  uint64_t payload;
  uint32_t tag;
};
static_assert(sizeof(Value) == 16);
constexpr uint32_t kTensor = 1;
constexpr size_t kFirstNumber = 3;

// As JSON, which differs from torch's text in how it writes truth; null for what it cannot hold.
std::string as_json(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if ((c < 'a' || c > 'z') && (c < '0' || c > '9') && std::strchr("[]-, \"", c) == nullptr) return "null";
  }
  return text;
}

}  // namespace

const char* InputText::describe(const Symbols& symbols, const RecordFunction& function, const char* role,
                                uint32_t inputs_at) noexcept {
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
    append_arguments(symbols, function, inputs_at);
    text_ += "}";
    return text_.c_str();
  } catch (...) {
    return role;
  }
}

void InputText::append_arguments(const Symbols& symbols, const RecordFunction& function, uint32_t inputs_at) {
  if (inputs_at == 0 || symbols.value_text == nullptr) return;
  const size_t wanted = arguments_of(symbols.name(&function));
  if (wanted == 0) return;
  struct {
    const Value* first;
    size_t count;
  } inputs{};  // c10::ArrayRef
  std::memcpy(&inputs, reinterpret_cast<const char*>(&function) + inputs_at, sizeof inputs);
  if (inputs.first == nullptr || inputs.count != wanted || inputs.first[0].tag != kTensor ||
      inputs.first[1].tag != kTensor)
    return;
  text_ += ", \"arguments\": [null, null, null";
  for (size_t i = kFirstNumber; i < wanted; ++i) text_ += ", " + as_json(symbols.value_text(&inputs.first[i], false));
  text_ += "]";
}

}  // namespace leadline::torch
