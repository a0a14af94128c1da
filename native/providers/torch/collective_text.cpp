#include "providers/torch/collective_text.h"

#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#include <typeinfo>

#include "base/losses.h"
#include "providers/torch/json_text.h"

namespace leadline::torch {
namespace {

// c10::DebugInfoBase: all that is known of an object before its type has been asked.
struct DebugInfoBase {
  virtual ~DebugInfoBase() = default;
};

// The first members of torch::ParamCommsDebugInfo behind its virtual table, the same in torch 2.4 to 2.13. Its pair of
// strings lies in memory with the second one first.
template <class String>
struct Described {
  const void* virtual_table;
  String description;
  String group;
  int32_t rank;
  int32_t world_size;
  String collective;
  int64_t elements_in;
};

struct OldString {  // of the ABI before C++11: characters, with their number before them
  const char* text;
  size_t size() const noexcept {
    size_t length;
    std::memcpy(&length, text - 3 * sizeof length, sizeof length);
    return length;
  }
  const char* data() const noexcept { return text; }
};

constexpr size_t kLongest = 512;
constexpr int32_t kMostRanks = 1 << 24;
constexpr int64_t kMostElements = int64_t{1} << 48;

template <class String>
std::optional<std::string_view> text_of(const String& string) noexcept {
  if (string.data() == nullptr || string.size() > kLongest || string.data()[string.size()] != '\0') return std::nullopt;
  return std::string_view(string.data(), string.size());
}

template <class String>
bool append(std::string* out, const Described<String>& info, FlightRecorder::Where* where) {
  if (info.rank < 0 || info.world_size <= info.rank || info.world_size > kMostRanks) return false;
  const auto group = text_of(info.group);
  const auto description = text_of(info.description);
  const auto collective = text_of(info.collective);
  if (!group || !description || !collective) return false;
  if (where != nullptr) {
    const bool named = *description != "undefined";
    const auto size = static_cast<std::uint32_t>(info.world_size);
    const bool counted = info.elements_in >= 0 && info.elements_in < kMostElements;
    *where = {*group,
              named ? *description : std::string_view(),
              size,
              static_cast<std::uint32_t>(info.rank),
              counted ? info.elements_in : -1,
              *collective};
  }
  *out = "{\"collective\": \"";
  append_escaped(out, *collective);
  *out += "\", \"process_group\": \"";
  append_escaped(out, *group);
  if (!description->empty() && *description != "undefined") {
    *out += "\", \"group_description\": \"";
    append_escaped(out, *description);
  }
  *out += "\", \"group_size\": " + std::to_string(info.world_size) + "}";
  return true;
}

}  // namespace

bool CollectiveText::is_wrapper(const char* operator_name) noexcept {
  return operator_name[0] == 'r' && std::strcmp(operator_name, "record_param_comms") == 0;
}

const char* CollectiveText::describe(const Symbols& symbols, FlightRecorder::Where* where) noexcept {
  if (symbols.debug_info == nullptr) return nullptr;
  try {
    const auto* info = static_cast<const DebugInfoBase*>(symbols.debug_info(symbols.communication_kind));
    if (info == nullptr) return nullptr;
    if (std::strcmp(typeid(*info).name(), "N5torch19ParamCommsDebugInfoE") != 0) return nullptr;
    const void* object = info;
    const bool known = symbols.old_strings ? append(&text_, *static_cast<const Described<OldString>*>(object), where)
                                           : append(&text_, *static_cast<const Described<std::string>*>(object), where);
    return known ? text_.c_str() : nullptr;
  } catch (...) {
    losses().count(LossKind::kInternalError, 1, "there was no memory for the description of a collective");
    return nullptr;
  }
}

}  // namespace leadline::torch
