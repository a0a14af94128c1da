#include "providers/torch/input_text.h"

#include <array>
#include <atomic>
#include <cstring>
#include <exception>
#include <locale>
#include <new>
#include <sstream>
#include <string_view>

#include "base/hash.h"
#include "base/losses.h"
#include "providers/torch/json_text.h"
#include "providers/torch/old_string_types.h"
#include "providers/torch/value.h"
#include "providers/torch/value_numbers.h"
#include "providers/torch/zeros.h"

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

// Texts by what they say. They are kept for good, so they are so many at most; what comes then is made anew each time.
struct Kept {
  std::atomic<uint64_t> key{0};
  std::atomic<const char*> text{nullptr};
};
constexpr size_t kKept = size_t{1} << 12;
std::array<Kept, kKept> g_kept;
TensorLayout g_layout;  // written before callbacks are registered

constexpr uint64_t kUnknown = 0;
constexpr size_t kNone = ~size_t{0};

// All that a text says; kUnknown for inputs of which torch itself is asked. What runs under a compiler's eyes has no
// memory, and sizes that are no numbers.
uint64_t key_of(const Values& inputs, const char* name, size_t zeros) noexcept {
  if (inputs.first == nullptr) return kUnknown;
  uint64_t key = hash_mix(reinterpret_cast<uint64_t>(name), inputs.count ^ zeros << 8);
  for (size_t i = 0; i < inputs.count; ++i) {
    const Value& value = inputs.first[i];
    key = hash_mix(key, value.tag);
    if (value.tag != kTensor) continue;
    if (value.payload == 0) return kUnknown;
    const TensorAt tensor(g_layout, value.payload);
    const uint64_t dimensions = tensor.dimensions();
    if (dimensions > kDimensions || tensor.data() == 0) return kUnknown;
    key = hash_mix(key, dimensions << 16 | tensor.type());
    for (uint64_t j = 0; j < dimensions; ++j) key = hash_mix(key, tensor.size(j));
  }
  return key | 1;
}

// A text may stand in any of the places beside each other that its key leads to.
constexpr size_t kWays = 2;
Kept* places_of(uint64_t key) noexcept { return &g_kept[hash_mix(key, 1) % (kKept / kWays) * kWays]; }

const char* kept(uint64_t key) noexcept {
  const Kept* const place = places_of(key);
  for (const Kept* slot = place; slot != place + kWays; ++slot)
    if (slot->key.load(std::memory_order_acquire) == key) return slot->text.load(std::memory_order_relaxed);
  return nullptr;
}

void keep(uint64_t key, const std::string& text) {
  Kept* const place = places_of(key);
  for (Kept* slot = place; slot != place + kWays; ++slot) {
    const char* nothing = nullptr;
    if (slot->text.load(std::memory_order_relaxed) != nullptr) continue;
    auto* const copy = new char[text.size() + 1];
    std::memcpy(copy, text.c_str(), text.size() + 1);
    if (slot->text.compare_exchange_strong(nothing, copy)) {
      slot->key.store(key, std::memory_order_release);
      return;
    }
    delete[] copy;
  }
}

constexpr char kUntold[] = "torch could not tell the shapes of an operator's inputs";

// Nested tensors ("doesn't support sizes") and symbolic ones have none, and torch says so by an error.
bool has_no_shape(const char* error) noexcept {
  return std::strstr(error, "support") != nullptr || std::strstr(error, "symbolic") != nullptr;
}

// torch's errors take tens of microseconds: inputs of this kind are not asked about again.
constexpr char kShapeless = '\0';
void remember_shapeless(uint64_t key) noexcept {
  if (key == kUnknown) return;
  try {
    keep(key, std::string());
  } catch (const std::bad_alloc&) {
    return;  // they are asked about again
  }
}

// Bytes of an element, by c10::ScalarType; 0 for types that hold no plain numbers.
size_t width_of(uint16_t type) noexcept {
  constexpr std::array<uint8_t, 16> kBytes = {1, 1, 2, 4, 8, 2, 4, 8, 0, 0, 0, 1, 0, 0, 0, 2};
  return type < kBytes.size() ? kBytes[type] : 0;
}

bool mostly_zero(const TensorAt& tensor) noexcept {
  Elements elements;
  elements.width = width_of(tensor.type());
  elements.dimensions = tensor.dimensions();
  uint64_t last = tensor.offset();
  for (size_t i = 0; i < elements.dimensions; ++i) {
    elements.sizes[i] = tensor.size(i);
    elements.strides[i] = tensor.stride(i);
    last += (elements.sizes[i] - 1) * elements.strides[i];
  }
  if (elements.width == 0 || last >= tensor.bytes() / elements.width || !ValueNumbers::is_of_cpu(tensor.data()))
    return false;
  elements.data = reinterpret_cast<const char*>(tensor.data() + tensor.offset() * elements.width);
  return torch::mostly_zero(elements);
}

// Which argument of a product or a choice is mostly zeros, and much smaller than what it is applied to: then most of
// what was computed for the other one is discarded. kNone where there is none.
size_t discarding(std::string_view name, const Values& inputs) noexcept {
  constexpr std::string_view kDiscard[] = {"aten::mul", "aten::mul_", "aten::bmm", "aten::where"};
  constexpr uint64_t kSmaller = 4;
  constexpr uint64_t kFewest = 64;
  bool asked = false;
  for (const std::string_view one : kDiscard) asked |= name == one;
  if (!asked || inputs.first == nullptr || inputs.count < 2) return kNone;
  uint64_t largest = 0;
  std::array<uint64_t, 3> counts{};
  for (size_t i = 0; i < inputs.count && i < counts.size(); ++i) {
    if (inputs.first[i].tag != kTensor || inputs.first[i].payload == 0) continue;
    const TensorAt tensor(g_layout, inputs.first[i].payload);
    if (tensor.dimensions() > kDimensions || tensor.data() == 0) return kNone;
    counts[i] = 1;
    for (uint64_t j = 0; j < tensor.dimensions(); ++j) counts[i] *= tensor.size(j);
    if (counts[i] > largest) largest = counts[i];
  }
  for (size_t i = 0; i < counts.size(); ++i)
    if (counts[i] >= kFewest && counts[i] * kSmaller <= largest &&
        mostly_zero(TensorAt(g_layout, inputs.first[i].payload)))
      return i;
  return kNone;
}

}  // namespace

void InputText::begin(const TensorLayout& layout) noexcept { g_layout = layout; }

const char* InputText::describe(const Symbols& symbols, const RecordFunction& function, const char* role,
                                uint32_t inputs_at) noexcept {
  uint64_t key = kUnknown;
  try {
    const bool readable = role == nullptr && inputs_at != 0 && g_layout.storage != 0 && g_layout.type != 0;
    const Values inputs = readable ? Values::of(function, inputs_at) : Values{};
    const char* const name = readable ? symbols.name(&function) : nullptr;
    const size_t zeros = readable ? discarding(name, inputs) : kNone;
    key = readable ? key_of(inputs, name, zeros) : kUnknown;
    if (key != kUnknown) {
      if (const char* const known = kept(key); known != nullptr) {
        kept_ = *known != kShapeless;
        return kept_ ? known : role;
      }
    }
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
    if (zeros != kNone) text_ += ", \"zeros\": [" + std::to_string(zeros) + ']';
    const bool whole = !append_arguments(symbols, function, inputs_at);
    text_ += '}';
    if (whole && key != kUnknown) keep(key, text_);
    return text_.c_str();
  } catch (const std::bad_alloc&) {
    losses().count(LossKind::kInternalError, 1, "there was no memory for the shapes of an operator's inputs");
  } catch (const std::exception& error) {
    if (has_no_shape(error.what())) {
      remember_shapeless(key);
    } else {
      losses().count(LossKind::kInternalError, 1, kUntold);
    }
  } catch (...) {
    losses().count(LossKind::kInternalError, 1, kUntold);
  }
  return role;
}

bool InputText::append_arguments(const Symbols& symbols, const RecordFunction& function, uint32_t inputs_at) {
  if (inputs_at == 0 || symbols.write_value == nullptr) return false;
  const size_t wanted = arguments_of(symbols.name(&function));
  if (wanted == 0) return false;
  const Values inputs = Values::of(function, inputs_at);
  if (inputs.first == nullptr || inputs.count < wanted || inputs.first[0].tag != kTensor) return true;
  text_ += ", \"arguments\": [null, null, null";
  for (size_t i = kFirstNumber; i < wanted; ++i) {
    const uint32_t tag = inputs.first[i].tag;  // a tensor's text would be its values, for which a device must be waited
    const bool number = tag != kNothing && tag != kTensor;
    text_ += ", " + (number ? as_json(symbols, &inputs.first[i]) : "null");
  }
  text_ += ']';
  return true;
}

}  // namespace leadline::torch
