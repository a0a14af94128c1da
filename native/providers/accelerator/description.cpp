#include "providers/accelerator/description.h"

#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

namespace leadline::accelerator {
namespace {

using Words = std::vector<std::string_view>;

constexpr std::array<std::string_view, 8> kKinds{"launch",   "copy", "set",      "synchronize",
                                                 "allocate", "free", "complete", "other"};
constexpr std::array<std::string_view, 13> kTypes{"void", "i8",  "i16", "i32", "i64",     "u8",  "u16",
                                                  "u32",  "u64", "f32", "f64", "pointer", "text"};
constexpr std::array<std::string_view, 13> kRoles{"-",      "name",     "kernel",     "bytes",   "stream",
                                                  "device", "id",       "completion", "address", "begin",
                                                  "end",    "duration", "direction"};
constexpr std::array<std::string_view, 3> kSuccesses{"always", "zero", "nonzero"};
constexpr std::array<std::string_view, 3> kClocks{"own", "monotonic", "realtime"};
// In the order of gpu::Direction.
constexpr std::array<std::string_view, 11> kDirections{"-",    "HtoD", "DtoH", "HtoA", "AtoH", "AtoA",
                                                       "AtoD", "DtoA", "DtoD", "HtoH", "PtoP"};

template <class E, std::size_t N>
bool read(const std::array<std::string_view, N>& words, std::string_view word, E* out) {
  const auto found = std::find(words.begin(), words.end(), word);
  if (found == words.end()) return false;
  *out = static_cast<E>(found - words.begin());
  return true;
}

Words split(std::string_view text, char at) {
  Words words;
  while (true) {
    const std::size_t end = text.find(at);
    words.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return words;
    text.remove_prefix(end + 1);
  }
}

bool read_argument(const Words& words, Argument* out) {
  if (words.size() != 3) return false;
  std::string_view type = words[1];
  out->points = type.ends_with('*');
  if (out->points) type.remove_suffix(1);
  return read(kTypes, type, &out->type) && read(kRoles, words[2], &out->role);
}

bool read_directions(std::string_view text, Function& to) {
  if (text.find(':') == std::string_view::npos) return read(kDirections, text, &to.direction);
  for (const std::string_view one : split(text, ',')) {
    const std::size_t colon = one.find(':');
    gpu::Direction direction{};
    if (colon == std::string_view::npos || !read(kDirections, one.substr(colon + 1), &direction)) return false;
    to.directions.emplace_back(std::strtoll(std::string(one.substr(0, colon)).c_str(), nullptr, 10), direction);
  }
  return true;
}

// Where the System V calling convention of x86-64 puts what is not returned in memory.
bool place(Function& function, bool more) {
  constexpr std::uint32_t kMoreWords = 32;
  std::uint8_t general = 0;
  std::uint8_t vector = 0;
  std::uint32_t stack = 0;
  for (Argument& argument : function.arguments) {
    const bool floats = !argument.points && (argument.type == Type::kF32 || argument.type == Type::kF64);
    if (floats && vector < 8) {
      argument.where = static_cast<std::uint8_t>(Argument::kVectors + vector++);
    } else if (!floats && general < 6) {
      argument.where = general++;
    } else {
      if (stack >= 200) return false;
      argument.where = static_cast<std::uint8_t>(Argument::kStack + stack++);
    }
  }
  function.stack_words = stack + (more ? kMoreWords : 0);
  return true;
}

bool read_line(const Words& words, Description& to) {
  const std::string_view what = words[0];
  if (what == "accelerator" && words.size() == 4) {
    auto made = std::make_unique<Accelerator>();
    made->name = words[1];
    made->tick_ns = std::strtod(std::string(words[3]).c_str(), nullptr);
    made->first_device = static_cast<std::int32_t>(to.accelerators.size()) * kDevicesOfOne;
    if (!read(kClocks, words[2], &made->clock)) return false;
    to.accelerators.push_back(std::move(made));
    return true;
  }
  if (to.accelerators.empty()) return false;
  if (what == "library" && words.size() == 2) {
    to.accelerators.back()->libraries.emplace_back(words[1]);
    return true;
  }
  if (what == "function" && words.size() == 7) {
    auto made = std::make_unique<Function>();
    made->name = words[1];
    made->blocking = words[3] == "1";
    made->bytes_each = std::strtoll(std::string(words[6]).c_str(), nullptr, 10);
    made->of = to.accelerators.back().get();
    if (!read(kKinds, words[2], &made->kind) || !read(kSuccesses, words[4], &made->success) ||
        !read_directions(words[5], *made)) {
      return false;
    }
    to.functions.push_back(std::move(made));
    return true;
  }
  if (to.functions.empty()) return false;
  Function& function = *to.functions.back();
  if (what == "argument" && words.size() == 3 && words[1] == "...") return function.more = place(function, true);
  if (what == "argument") {
    function.arguments.emplace_back();
    return read_argument(words, &function.arguments.back()) && place(function, function.more);
  }
  return what == "returns" && read_argument(words, &function.returned);
}

}  // namespace

const Argument* Function::with(Role role) const noexcept {
  for (const Argument& argument : arguments) {
    if (argument.role == role) return &argument;
  }
  return nullptr;
}

bool Function::makes_work() const noexcept {
  if (kind != Kind::kLaunch && kind != Kind::kCopy && kind != Kind::kSet) return false;
  return blocking || late_id() || with(Role::kId) != nullptr || with(Role::kCompletion) != nullptr;
}

bool Function::late_id() const noexcept {
  const Argument* given = with(Role::kId);
  return returned.role == Role::kId || (given != nullptr && given->points);
}

bool parse(const std::string& text, Description* out, std::string* error) {
  out->text = text;
  for (const std::string_view line : split(text, '\n')) {
    if (line.empty()) continue;
    if (read_line(split(line, '\t'), *out)) continue;
    *error = "The description of an accelerator has a line that this version does not know: " + std::string(line) + ".";
    return false;
  }
  return true;
}

bool matches(const std::string& pattern, const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const bool whole = pattern.find('/') != std::string::npos || slash == std::string::npos;
  const std::string of = whole ? path : path.substr(slash + 1);
  return fnmatch(pattern.c_str(), of.c_str(), 0) == 0 || fnmatch((pattern + ".*").c_str(), of.c_str(), 0) == 0;
}

}  // namespace leadline::accelerator
