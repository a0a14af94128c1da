#include "providers/torch/input_text.h"

#include <cstring>
#include <locale>
#include <sstream>
#include <string_view>

#include "base/losses.h"
#include "providers/torch/json_text.h"
#include "providers/torch/old_string_types.h"
#include "providers/torch/value.h"

namespace leadline::torch {
namespace {

// Operators of which shapes alone do not tell what they do, and how many of their first arguments do: stride, padding
// and dilation of convolutions, sizes of recurrent layers, the longest of
// sequences that are packed into one.
struct Wanted {
  std::string_view name;
  size_t arguments;
};
constexpr Wanted kWanted[] = {
    {"aten::convolution", 9},
    {"aten::convolution_backward", 11},
    {"aten::_flash_attention_forward", 7},
    {"aten::_flash_attention_backward", 10},
    {"aten::_efficient_attention_forward", 8},
    {"aten::_efficient_attention_backward", 10},
    {"aten::_cudnn_rnn", 14},
    {"aten::_cudnn_rnn_backward", 18},
    {"torch_attn::_varlen_attn", 7},
    {"torch_attn::_varlen_attn_backward", 10},
    {"flash_attn::_flash_attn_varlen_forward", 7},
    {"flash_attn::_flash_attn_varlen_backward", 13},
};

size_t arguments_of(std::string_view name) {
  for (const Wanted& wanted : kWanted)
    if (name == wanted.name) return wanted.arguments;
  return 0;
}

constexpr size_t kFirstNumber = 3;

// As JSON, which differs from torch's text in how it writes truth; null for what it cannot hold.
std::string as_json(const Symbols& symbols, const Value* value) {
  std::ostringstream stream;
  stream.imbue(std::locale::classic());
  symbols.write_value(stream, value);
  std::string text = stream.str();
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
      text_ += ']';
    }
    text_ += ']';
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
        text_ += '"';
      }
      text_ += ']';
    }
    append_arguments(symbols, function, inputs_at);
    text_ += '}';
    return text_.c_str();
  } catch (...) {
    losses().count(LossKind::kInternalError, 1, "there was no memory for the shapes of an operator's inputs");
    return role;
  }
}

void InputText::append_arguments(const Symbols& symbols, const RecordFunction& function, uint32_t inputs_at) {
  if (inputs_at == 0 || symbols.write_value == nullptr) return;
  const size_t wanted = arguments_of(symbols.name(&function));
  if (wanted == 0) return;
  const Values inputs = Values::of(function, inputs_at);
  if (inputs.first == nullptr || inputs.count < wanted || inputs.first[0].tag != kTensor) return;
  text_ += ", \"arguments\": [null, null, null";
  for (size_t i = kFirstNumber; i < wanted; ++i) {
    const uint32_t tag = inputs.first[i].tag;  // a tensor's text would be its values, for which a device must be waited
    const bool number = tag != kNothing && tag != kTensor;
    text_ += ", " + (number ? as_json(symbols, &inputs.first[i]) : "null");
  }
  text_ += ']';
}

}  // namespace leadline::torch
