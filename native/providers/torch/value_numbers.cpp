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
#include "providers/torch/value_list.h"

namespace leadline::torch {
namespace {

constexpr uint64_t kUnknown = 0;

// Operators whose results do not follow from their arguments: random numbers, memory as it was found.
constexpr std::string_view kOfChance[] = {"rand",        "dropout", "bernoulli", "multinomial", "normal_", "::normal",
                                          "uniform",     "poisson", "cauchy",    "geometric",   "rrelu",   "empty",
                                          "exponential", "resize",  "set_data",  "_foreach"};
constexpr std::string_view kNamespace = "aten::";

bool is_of_chance(std::string_view name) noexcept {
  return std::any_of(std::begin(kOfChance), std::end(kOfChance),
                     [&](std::string_view word) { return name.find(word) != std::string_view::npos; });
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
std::atomic<uint64_t> g_largest_table{0};  // of those that batches were looked up in

struct Outermost {
  const void* token = nullptr;
  uint64_t key = kUnknown;
  uint64_t made = 0;
};
__attribute__((tls_model("initial-exec"))) thread_local constinit Outermost t_outermost;

// A few places for each address, so that what comes and goes does not displace what lives long.
constexpr size_t kWays = 4;

struct Place {
  Slot* slot;  // nullptr: nothing is known of the address
  uint64_t tag;
};

Place known_place(uint64_t address) noexcept {
  const uint64_t hash = hash_mix(address, 1);
  const uint64_t tag = ((hash >> 32) & kTag) | 1;
  Slot* const first = &g_slots[hash % (kSlots / kWays) * kWays];
  for (Slot* slot = first; slot != first + kWays; ++slot)
    if ((slot->number.load(std::memory_order_relaxed) & kTag) == tag) return {slot, tag};
  return {nullptr, tag};
}

// The same for memory that was just made: a free place, else one of the others.
Place place_for(uint64_t address) noexcept {
  const Place known = known_place(address);
  if (known.slot != nullptr) return known;
  const uint64_t hash = hash_mix(address, 1);
  Slot* const first = &g_slots[hash % (kSlots / kWays) * kWays];
  for (Slot* slot = first; slot != first + kWays; ++slot)
    if (slot->number.load(std::memory_order_relaxed) == 0) return {slot, known.tag};
  return {first + (hash >> 48) % kWays, known.tag};
}

constexpr uint64_t kWhole = 64;  // so few bytes are read as they are: their value is their number

// Words here and there, the first and the last among them.
uint64_t sample(uint64_t number, uint64_t data, uint64_t bytes, uint64_t words) noexcept {
  const uint64_t last = bytes - sizeof(uint64_t);
  for (uint64_t i = 0; i < words; ++i) number = hash_mix(number, at<uint64_t>(data, last * i / (words - 1)));
  return number;
}

// nullptr where nothing is known of the memory.
const Slot* slot_of(uint64_t data) noexcept { return data == 0 ? nullptr : known_place(data).slot; }

bool is_of_cpu(const Slot& slot) noexcept { return (slot.serial.load(std::memory_order_relaxed) & 1) != 0; }

uint32_t version_of(const TensorAt& tensor, const Slot& slot) noexcept {
  return tensor.counter() != 0 ? at<uint32_t>(tensor.counter(), g_layout.version)
                               : slot.version.load(std::memory_order_relaxed);
}

// Memory that torch's allocators made.
uint64_t number_of_ours(const TensorAt& tensor, const Slot& slot) noexcept {
  constexpr uint64_t kWords = 16;
  const bool on_cpu = is_of_cpu(slot);
  // Tensors of inference mode have no version; of memory of the CPU the words that are read tell what was written.
  if (tensor.counter() == 0 && !on_cpu) return kUnknown;
  const uint32_t version = version_of(tensor, slot);
  const uint64_t number = version == slot.version.load(std::memory_order_relaxed)
                              ? slot.number.load(std::memory_order_relaxed) & ~kTag
                              : hash_mix(slot.serial.load(std::memory_order_relaxed), version + 1);
  if (!on_cpu) return number;
  const uint64_t bytes = tensor.bytes();
  if (bytes <= kWhole) return hash_bytes(reinterpret_cast<const char*>(tensor.data()), bytes);  // a number of Python's
  return sample(number, tensor.data(), bytes, kWords);
}

// Memory of the CPU that torch's allocators did not make, or made before: only its place and its content tell it, so
// more of that is read, lest batches that a loader makes at the same place look alike.
uint64_t number_of_others(const TensorAt& tensor) noexcept {
  constexpr uint64_t kWords = 128;
  if (!tensor.is_on_cpu()) return kUnknown;
  const uint64_t bytes = tensor.bytes();
  const uint64_t version = tensor.counter() != 0 ? at<uint32_t>(tensor.counter(), g_layout.version) : 0;
  if (bytes <= kWhole) return hash_bytes(reinterpret_cast<const char*>(tensor.data()), bytes);
  return sample(hash_mix(tensor.data(), version), tensor.data(), bytes, kWords);
}

uint64_t number_of(uint64_t address) noexcept {
  if (address == 0) return kUnknown;
  const TensorAt tensor(g_layout, address);
  const uint64_t dimensions = tensor.dimensions();
  if (dimensions > kDimensions) return kUnknown;
  const uint64_t data = tensor.data();
  if (data == 0) return kUnknown;
  const Slot* const slot = slot_of(data);
  uint64_t number = slot != nullptr ? number_of_ours(tensor, *slot) : number_of_others(tensor);
  if (number == kUnknown) return kUnknown;
  for (uint64_t i = 0; i < dimensions; ++i) number = hash_mix(hash_mix(number, tensor.size(i)), tensor.stride(i));
  return hash_mix(number, tensor.offset()) | 1;
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

// What may still be read of one argument: a long or a deep list is not worth its time, nor the program's stack. One
// list may stand in another many times.
struct Room {
  int levels = 4;
  size_t values = 256;
};

uint64_t number_of(const Symbols& symbols, const Value& value, Room* room) noexcept;

// Of numbers, of tensors or of lists.
uint64_t number_of_list(const Symbols& symbols, uint64_t list, Room* room) noexcept {
  if (!ValueList::known() || room->levels == 0) return kUnknown;
  const Values values = ValueList::of(list);
  if (values.count > room->values) return kUnknown;
  room->values -= values.count;
  --room->levels;
  uint64_t key = hash_mix(values.count, kList.size());
  for (size_t i = 0; i < values.count; ++i) {
    const uint64_t number = number_of(symbols, values.first[i], room);
    if (number == kUnknown) return kUnknown;
    key = hash_mix(key, number);
  }
  ++room->levels;
  return key | 1;
}

uint64_t number_of(const Symbols& symbols, const Value& value, Room* room) noexcept {
  constexpr uint64_t kTruth = 0xff;
  constexpr uint64_t kDevice = 0xffff;
  if (value.tag == kNothing) return 1;
  if (value.tag == kTensor) return number_of(value.payload);
  if (value.tag == kDouble || value.tag == kInteger) return hash_mix(value.payload, value.tag) | 1;
  const uint32_t list = g_list_tag.load(std::memory_order_relaxed);
  if (list == 0) return kUnknown;
  if (value.tag == list) return number_of_list(symbols, value.payload, room);
  if (value.tag + kBoolBefore == list) return hash_mix(value.payload & kTruth, value.tag) | 1;
  if (value.tag == list + kDeviceBehind) return hash_mix(value.payload & kDevice, value.tag) | 1;
  if (value.tag + kStringBefore == list) return of_text(symbols, value);
  return kUnknown;
}

constexpr uint64_t kMostRows = 1 << 24;

// Types of tokens and positions are looked up in smaller tables than words. What was counted of smaller ones goes.
bool is_largest_table(uint64_t rows) noexcept {
  const uint64_t largest = g_largest_table.load(std::memory_order_relaxed);
  if (rows <= largest) return rows == largest;
  g_largest_table.store(rows, std::memory_order_relaxed);
  g_batches.store(0, std::memory_order_relaxed);
  g_padding.store(0, std::memory_order_relaxed);
  g_common_padding.store(0, std::memory_order_relaxed);
  return true;
}

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
  const uint64_t looked_up = inputs.first[kTokens].payload;
  if (width == 0 || table == 0 || looked_up == 0) return;
  const TensorAt tokens(g_layout, looked_up);
  const TensorAt words(g_layout, table);
  if (tokens.dimensions() != 2 || words.dimensions() != 2 || tokens.data() == 0 ||
      !ValueNumbers::is_of_cpu(words.data()))
    return;
  const bool small = tokens.size(0) - 1 < kMostRows && tokens.size(1) - 1 < kMostRows &&
                     tokens.stride(0) < kMostRows * kMostRows && tokens.stride(1) < kMostRows * kMostRows;
  if (!small) return;
  const uint64_t last =
      tokens.offset() + (tokens.size(0) - 1) * tokens.stride(0) + (tokens.size(1) - 1) * tokens.stride(1);
  if ((last + 1) * width > tokens.bytes()) return;
  const std::optional<Padding> found =
      Padding::of({reinterpret_cast<const char*>(tokens.data() + tokens.offset() * width), width,
                   static_cast<int64_t>(tokens.size(0)), static_cast<int64_t>(tokens.size(1)),
                   static_cast<int64_t>(tokens.stride(0)), static_cast<int64_t>(tokens.stride(1))});
  if (!found || !is_largest_table(words.size(0))) return;
  g_batches.fetch_add(1, std::memory_order_relaxed);
  g_padding.fetch_add(found->all, std::memory_order_relaxed);
  g_common_padding.fetch_add(found->common, std::memory_order_relaxed);
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
  const TensorAt tensor(g_layout, inputs.first[0].payload);  // its number was asked for, so it has all this
  const Place place = known_place(tensor.data());
  if (place.slot == nullptr) return;
  place.slot->version.store(version_of(tensor, *place.slot) + 1, std::memory_order_relaxed);
  place.slot->number.store((key & ~kTag) | place.tag, std::memory_order_relaxed);
}

// Attention may drop weights by chance, and so may layers of recurrent networks: a number among their arguments says
// how many.
bool drops(std::string_view name, const Values& inputs) noexcept {
  constexpr size_t kProbability = 4;
  constexpr std::string_view kRecurrent[] = {"aten::lstm", "aten::gru", "aten::rnn_"};
  const auto is_number = [](const Value& value) { return value.tag == kDouble && value.payload != 0; };
  if (name.find("dot_product") != std::string_view::npos)
    return inputs.count > kProbability && is_number(inputs.first[kProbability]);
  return std::any_of(std::begin(kRecurrent), std::end(kRecurrent),
                     [&](std::string_view one) { return name.starts_with(one); }) &&
         std::any_of(inputs.first, inputs.first + inputs.count, is_number);
}

uint64_t key_of(const Symbols& symbols, const RecordFunction& function, std::string_view name, std::string_view text,
                uint32_t inputs_at) noexcept {
  if (inputs_at == 0 || symbols.write_value == nullptr || !name.starts_with(kNamespace) || is_of_chance(name))
    return kUnknown;
  const Values inputs = Values::of(function, inputs_at);
  if (inputs.first == nullptr || drops(name, inputs)) return kUnknown;
  uint64_t key = hash_mix(hash_bytes(name.data(), name.size()), hash_bytes(text.data(), text.size()));
  for (size_t i = 0; i < inputs.count; ++i) {
    Room room;
    const uint64_t number = number_of(symbols, inputs.first[i], &room);
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
  g_largest_table.store(0, std::memory_order_relaxed);
  g_common_padding.store(0, std::memory_order_relaxed);
  for (Slot& slot : g_slots) slot.number.store(0, std::memory_order_relaxed);  // frees may have gone by unheard
  for (std::atomic<uint64_t>& seen : g_seen) seen.store(0, std::memory_order_relaxed);
  on_.store(true);
}

void ValueNumbers::learn(const RecordFunction& function, const char* text, uint32_t inputs_at) noexcept {
  if (text == nullptr || inputs_at == 0) return;
  const Values inputs = Values::of(function, inputs_at);
  std::string_view rest = types_in(text);
  for (size_t i = 0; inputs.first != nullptr && i < inputs.count; ++i) {
    if (next_word(&rest) != kList) continue;
    g_list_tag.store(inputs.first[i].tag, std::memory_order_relaxed);
    ValueList::learn(inputs.first[i].payload, 1);
  }
}

void ValueNumbers::allocated(const void* address, size_t bytes, bool on_cpu) noexcept {
  const uint64_t serial = (g_serial.fetch_add(1, std::memory_order_relaxed) + 1) * 2 + (on_cpu ? 1 : 0);
  Outermost& outer = t_outermost;
  const uint64_t number =
      outer.key != kUnknown ? hash_mix(outer.key, hash_mix(++outer.made, bytes)) : hash_mix(serial, 0);
  const Place place = place_for(reinterpret_cast<uint64_t>(address));
  place.slot->serial.store(serial, std::memory_order_relaxed);
  place.slot->version.store(0, std::memory_order_relaxed);
  place.slot->number.store((number & ~kTag) | place.tag, std::memory_order_relaxed);
}

void ValueNumbers::freed(const void* address) noexcept {
  const Place place = known_place(reinterpret_cast<uint64_t>(address));
  if (place.slot != nullptr) place.slot->number.store(0, std::memory_order_relaxed);
}

bool ValueNumbers::is_of_cpu(uint64_t data) noexcept {
  const Slot* const slot = slot_of(data);
  return slot != nullptr && torch::is_of_cpu(*slot);
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
