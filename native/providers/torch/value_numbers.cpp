#include "providers/torch/value_numbers.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <locale>
#include <sstream>
#include <string>
#include <string_view>

#include "base/hash.h"
#include "base/steps_ended.h"
#include "providers/torch/padding.h"
#include "providers/torch/value.h"

namespace leadline::torch {
namespace {

constexpr uint64_t kUnknown = 0;

// Operators whose results do not follow from their arguments: random numbers, memory as it was found.
constexpr std::string_view kOfChance[] = {"rand",        "dropout", "bernoulli", "multinomial", "normal_", "::normal",
                                          "uniform",     "poisson", "cauchy",    "geometric",   "rrelu",   "empty",
                                          "exponential", "resize",  "set_data",  "_foreach"};
// Operators whose lists hold numbers. A list of others may hold tensors, whose text would be their values.
constexpr std::string_view kListsOfNumbers[] = {
    "_fft_",     "adaptive_",    "amax",         "amin",       "as_strided",
    "avg_pool",  "broadcast_to", "constant_pad", "conv",       "expand",
    "fft_",      "flip",         "full",         "layer_norm", "linalg_",
    "logsumexp", "max_pool",     "mean",         "movedim",    "native_layer_norm",
    "new_",      "norm",         "ones",         "pad",        "permute",
    "repeat",    "reshape",      "rms_norm",     "roll",       "split_with_sizes",
    "std",       "sum",          "tile",         "unflatten",  "upsample_",
    "var",       "view",         "zeros"};
constexpr std::string_view kNamespace = "aten::";

bool is_of_chance(std::string_view name) noexcept {
  return std::any_of(std::begin(kOfChance), std::end(kOfChance),
                     [&](std::string_view word) { return name.find(word) != std::string_view::npos; });
}

bool lists_hold_numbers(std::string_view name) noexcept {
  name.remove_prefix(kNamespace.size());
  return std::any_of(std::begin(kListsOfNumbers), std::end(kListsOfNumbers),
                     [&](std::string_view word) { return name.starts_with(word); });
}

template <typename T>
T at(uint64_t object, uint64_t offset) noexcept {
  T value;
  std::memcpy(&value, reinterpret_cast<const char*>(object) + offset, sizeof value);
  return value;
}

// What is known of memory, by its address: one word says whose it is and what its first content is, so that no reader
// sees half of a change.
struct Slot {
  std::atomic<uint64_t> number{0};   // the lowest bits: of the address
  std::atomic<uint64_t> serial{0};   // the lowest bit: of the CPU
  std::atomic<uint32_t> version{0};  // that the number is of
};
constexpr size_t kSlots = size_t{1} << 16;
constexpr uint64_t kTag = kSlots - 1;
std::array<Slot, kSlots> g_slots;
std::array<std::atomic<uint64_t>, kSlots> g_seen;  // operators with what they were called with
std::atomic<uint64_t> g_serial{0};
TensorLayout g_layout;  // written before callbacks are registered
uint64_t g_first_step = 0;
// Batches that were looked at, and the sums of their padding.
std::atomic<uint64_t> g_batches{0};
std::atomic<int64_t> g_padding{0};
std::atomic<int64_t> g_common_padding{0};

struct Outermost {
  const void* token = nullptr;
  uint64_t key = kUnknown;
  uint64_t made = 0;
};
__attribute__((tls_model("initial-exec"))) thread_local constinit Outermost t_outermost;

struct Place {
  Slot& slot;
  uint64_t tag;
};

Place place_of(uint64_t address) noexcept {
  const uint64_t hash = hash_mix(address, 1);
  return {g_slots[hash % kSlots], (hash >> 32) & kTag};
}

constexpr uint64_t kWhole = 64;  // so few bytes are read as they are: their value is their number

// Words here and there, the first and the last among them.
uint64_t sample(uint64_t number, uint64_t data, uint64_t bytes) noexcept {
  constexpr uint64_t kWords = 16;
  const uint64_t last = bytes - sizeof(uint64_t);
  for (uint64_t i = 0; i < kWords; ++i) number = hash_mix(number, at<uint64_t>(data, last * i / (kWords - 1)));
  return number;
}

// c10::impl::SizesAndStrides and the storage's offset behind it; more dimensions stand elsewhere.
constexpr uint64_t kDimensions = 5;

uint64_t number_of(uint64_t tensor) noexcept {
  if (tensor == 0) return kUnknown;
  const auto storage = at<uint64_t>(tensor, g_layout.storage);
  const auto counter = at<uint64_t>(tensor, g_layout.counter);
  const auto dimensions = at<uint64_t>(tensor, g_layout.geometry);
  if (storage == 0 || counter == 0 || dimensions > kDimensions) return kUnknown;
  const auto data = at<uint64_t>(storage, g_layout.data);
  if (data == 0) return kUnknown;
  const Place place = place_of(data);
  const uint64_t known = place.slot.number.load(std::memory_order_relaxed);
  if (known == 0 || (known & kTag) != place.tag) return kUnknown;
  const uint64_t serial = place.slot.serial.load(std::memory_order_relaxed);
  const auto version = at<uint32_t>(counter, g_layout.version);
  const bool on_cpu = (serial & 1) != 0;
  const uint64_t bytes = on_cpu ? at<uint64_t>(storage, g_layout.bytes) : 0;
  uint64_t number =
      version == place.slot.version.load(std::memory_order_relaxed) ? known & ~kTag : hash_mix(serial, version + 1);
  if (on_cpu && bytes <= kWhole) {  // such as a number of Python's
    number = hash_bytes(reinterpret_cast<const char*>(data), bytes);
  } else if (on_cpu) {
    number = sample(number, data, bytes);
  }
  for (uint64_t i = 0; i < dimensions; ++i) {
    number = hash_mix(number, at<uint64_t>(tensor, g_layout.geometry + 8 * (1 + i)));
    number = hash_mix(number, at<uint64_t>(tensor, g_layout.geometry + 8 * (1 + kDimensions + i)));
  }
  number = hash_mix(number, at<uint64_t>(tensor, g_layout.geometry + 8 * (1 + 2 * kDimensions)));
  return number | 1;
}

uint64_t of_text(const Symbols& symbols, const Value& value) noexcept {
  try {
    std::ostringstream stream;
    stream.imbue(std::locale::classic());
    symbols.write_value(stream, &value);
    const std::string text = stream.str();
    return hash_bytes(text.data(), text.size()) | 1;
  } catch (...) {
    return kUnknown;
  }
}

// Tags behind whole numbers differ between releases of torch: the tag of lists, which types name, tells the others'.
std::atomic<uint32_t> g_list_tag{0};
constexpr uint32_t kBoolBefore = 4;
constexpr uint32_t kStringBefore = 2;
constexpr uint32_t kDeviceBehind = 4;
constexpr std::string_view kList = "GenericList";

std::string_view types_in(std::string_view text) noexcept {
  constexpr std::string_view kBefore = "\"types\": ";
  const size_t at = text.find(kBefore);
  return at == std::string_view::npos ? std::string_view() : text.substr(at + kBefore.size());
}

// The next word of `["float", "GenericList", ""]`.
std::string_view next_word(std::string_view* rest) noexcept {
  const size_t begin = rest->find('"');
  const size_t end = begin == std::string_view::npos ? begin : rest->find('"', begin + 1);
  if (end == std::string_view::npos) return {};
  const std::string_view word = rest->substr(begin + 1, end - begin - 1);
  rest->remove_prefix(end + 1);
  return word;
}

uint64_t number_of(const Symbols& symbols, const Value& value, std::string_view type, std::string_view name) noexcept {
  constexpr uint64_t kTruth = 0xff;
  constexpr uint64_t kDevice = 0xffff;
  if (value.tag == kNothing) return 1;
  if (value.tag == kTensor) return number_of(value.payload);
  if (value.tag == kDouble || value.tag == kInteger) return hash_mix(value.payload, value.tag) | 1;
  if (type == kList) return lists_hold_numbers(name) ? of_text(symbols, value) : kUnknown;
  const uint32_t list = g_list_tag.load(std::memory_order_relaxed);
  if (list == 0) return kUnknown;
  if (value.tag + kBoolBefore == list) return hash_mix(value.payload & kTruth, value.tag) | 1;
  if (value.tag == list + kDeviceBehind) return hash_mix(value.payload & kDevice, value.tag) | 1;
  if (value.tag + kStringBefore == list) return of_text(symbols, value);
  return kUnknown;
}

constexpr uint64_t kMostRows = 1 << 24;

// Of what an embedding looks up, whose table says that both are memory of the CPU.
void look_for_padding(const Values& inputs, std::string_view text) noexcept {
  constexpr size_t kTable = 0;
  constexpr size_t kTokens = 1;
  if (inputs.count <= kTokens || inputs.first[kTable].tag != kTensor || inputs.first[kTokens].tag != kTensor) return;
  std::string_view rest = types_in(text);
  next_word(&rest);
  const std::string_view type = next_word(&rest);
  const uint64_t width = type == "long int" ? sizeof(int64_t) : type == "int" ? sizeof(int32_t) : 0;
  const uint64_t table = inputs.first[kTable].payload;
  const uint64_t tokens = inputs.first[kTokens].payload;
  if (width == 0 || table == 0 || tokens == 0 || at<uint64_t>(tokens, g_layout.geometry) != 2) return;
  const auto of_table = at<uint64_t>(table, g_layout.storage);
  const auto storage = at<uint64_t>(tokens, g_layout.storage);
  if (of_table == 0 || storage == 0) return;
  const Place place = place_of(at<uint64_t>(of_table, g_layout.data));
  const uint64_t known = place.slot.number.load(std::memory_order_relaxed);
  const bool on_cpu = (place.slot.serial.load(std::memory_order_relaxed) & 1) != 0;
  if (known == 0 || (known & kTag) != place.tag || !on_cpu) return;
  const auto size = [&](uint64_t i) { return at<uint64_t>(tokens, g_layout.geometry + 8 * (1 + i)); };
  const auto stride = [&](uint64_t i) { return at<uint64_t>(tokens, g_layout.geometry + 8 * (1 + kDimensions + i)); };
  const auto offset = at<uint64_t>(tokens, g_layout.geometry + 8 * (1 + 2 * kDimensions));
  const auto data = at<uint64_t>(storage, g_layout.data);
  const bool small = size(0) - 1 < kMostRows && size(1) - 1 < kMostRows && stride(0) < kMostRows * kMostRows &&
                     stride(1) < kMostRows * kMostRows;
  if (data == 0 || !small) return;
  const uint64_t last = offset + (size(0) - 1) * stride(0) + (size(1) - 1) * stride(1);
  if ((last + 1) * width > at<uint64_t>(storage, g_layout.bytes)) return;
  const Padding found =
      Padding::of({reinterpret_cast<const char*>(data + offset * width), width, static_cast<int64_t>(size(0)),
                   static_cast<int64_t>(size(1)), static_cast<int64_t>(stride(0)), static_cast<int64_t>(stride(1))});
  g_batches.fetch_add(1, std::memory_order_relaxed);
  g_padding.fetch_add(found.all, std::memory_order_relaxed);
  g_common_padding.fetch_add(found.common, std::memory_order_relaxed);
}

// All of the first steps, then two of eight, one after the other so that what the second does again is seen. What one
// call stands for; 0: it is not numbered.
uint32_t weight_now() noexcept {
  constexpr uint64_t kAll = 8;
  constexpr uint64_t kOf = 8;
  constexpr uint64_t kNumbered = 2;
  const uint64_t step = g_steps_ended.load(std::memory_order_relaxed) - g_first_step;
  if (step < kAll) return 1;
  return step % kOf < kNumbered ? kOf / kNumbered : 0;
}

// What an operator writes in place follows from what was there and from its other arguments, and is one version newer.
void writes(const RecordFunction& function, uint32_t inputs_at, uint64_t key) noexcept {
  const Values inputs = Values::of(function, inputs_at);
  if (inputs.count == 0 || inputs.first[0].tag != kTensor) return;
  const uint64_t tensor = inputs.first[0].payload;  // its number was asked for, so it has all this
  const Place place = place_of(at<uint64_t>(at<uint64_t>(tensor, g_layout.storage), g_layout.data));
  place.slot.version.store(at<uint32_t>(at<uint64_t>(tensor, g_layout.counter), g_layout.version) + 1,
                           std::memory_order_relaxed);
  place.slot.number.store((key & ~kTag) | place.tag, std::memory_order_relaxed);
}

// Attention may drop weights by chance; its fifth argument says how many.
bool drops(std::string_view name, const Values& inputs) noexcept {
  constexpr size_t kProbability = 4;
  return name.find("dot_product") != std::string_view::npos && inputs.count > kProbability &&
         inputs.first[kProbability].tag == kDouble && inputs.first[kProbability].payload != 0;
}

uint64_t key_of(const Symbols& symbols, const RecordFunction& function, std::string_view name, std::string_view text,
                uint32_t inputs_at) noexcept {
  if (inputs_at == 0 || symbols.write_value == nullptr || !name.starts_with(kNamespace) || is_of_chance(name))
    return kUnknown;
  const Values inputs = Values::of(function, inputs_at);
  if (inputs.first == nullptr || drops(name, inputs)) return kUnknown;
  uint64_t key = hash_mix(hash_bytes(name.data(), name.size()), hash_bytes(text.data(), text.size()));
  std::string_view rest = types_in(text);
  for (size_t i = 0; i < inputs.count; ++i) {
    const uint64_t number = number_of(symbols, inputs.first[i], next_word(&rest), name);
    if (number == kUnknown) return kUnknown;
    key = hash_mix(key, number);
  }
  return key | 1;
}

}  // namespace

void ValueNumbers::begin(const TensorLayout& layout) noexcept {
  if (layout.storage == 0) return;
  g_layout = layout;
  g_first_step = g_steps_ended.load(std::memory_order_relaxed);
  g_batches.store(0, std::memory_order_relaxed);
  g_padding.store(0, std::memory_order_relaxed);
  g_common_padding.store(0, std::memory_order_relaxed);
  for (Slot& slot : g_slots) slot.number.store(0, std::memory_order_relaxed);  // frees may have gone by unheard
  on_.store(true);
}

void ValueNumbers::learn(const RecordFunction& function, const char* text, uint32_t inputs_at) noexcept {
  if (text == nullptr || inputs_at == 0) return;
  const Values inputs = Values::of(function, inputs_at);
  std::string_view rest = types_in(text);
  for (size_t i = 0; inputs.first != nullptr && i < inputs.count; ++i)
    if (next_word(&rest) == kList) g_list_tag.store(inputs.first[i].tag, std::memory_order_relaxed);
}

void ValueNumbers::allocated(const void* address, size_t bytes, bool on_cpu) noexcept {
  const uint64_t serial = (g_serial.fetch_add(1, std::memory_order_relaxed) + 1) * 2 + (on_cpu ? 1 : 0);
  Outermost& outer = t_outermost;
  const uint64_t number =
      outer.key != kUnknown ? hash_mix(outer.key, hash_mix(++outer.made, bytes)) : hash_mix(serial, 0);
  const Place place = place_of(reinterpret_cast<uint64_t>(address));
  place.slot.serial.store(serial, std::memory_order_relaxed);
  place.slot.version.store(0, std::memory_order_relaxed);
  place.slot.number.store((number & ~kTag) | place.tag, std::memory_order_relaxed);
}

void ValueNumbers::freed(const void* address) noexcept {
  const Place place = place_of(reinterpret_cast<uint64_t>(address));
  if ((place.slot.number.load(std::memory_order_relaxed) & kTag) == place.tag)
    place.slot.number.store(0, std::memory_order_relaxed);
}

uint32_t ValueNumbers::begins(const Symbols& symbols, const RecordFunction& function, const char* name,
                              const char* text, uint32_t inputs_at) noexcept {
  constexpr std::string_view kLookUp = "aten::embedding";
  Outermost& outer = t_outermost;
  if (outer.token != nullptr) return 0;
  outer = {&function, kUnknown, 0};
  const uint32_t weight = weight_now();
  if (weight == 0 || name == nullptr || text == nullptr || inputs_at == 0) return 0;
  if (name == kLookUp) look_for_padding(Values::of(function, inputs_at), text);
  const uint64_t key = key_of(symbols, function, name, text, inputs_at);
  if (key == kUnknown) return 0;
  outer.key = key;
  if (std::string_view(name).ends_with('_')) writes(function, inputs_at, key);
  std::atomic<uint64_t>& seen = g_seen[hash_mix(key, 2) % kSlots];
  if (seen.load(std::memory_order_relaxed) == key) return weight;
  seen.store(key, std::memory_order_relaxed);
  return 0;
}

void ValueNumbers::begins_unknown(const RecordFunction& function) noexcept {
  if (t_outermost.token == nullptr) t_outermost = {&function, kUnknown, 0};
}

PaddingSums ValueNumbers::padding() noexcept {
  return {g_batches.load(std::memory_order_relaxed), g_padding.load(std::memory_order_relaxed),
          g_common_padding.load(std::memory_order_relaxed)};
}

void ValueNumbers::ends(const RecordFunction& function) noexcept {
  if (t_outermost.token == &function) t_outermost = {};
}

}  // namespace leadline::torch
