// A strict JSON scanner over text that comes in pieces: it tells what is damaged from what has not been read yet.
// What Python's json takes is taken, NaN and Infinity and control characters in texts included. So is what other
// writers leave behind: bare words such as N/A or nan, numbers that are not finished, backslashes that escape nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace leadline::offline {

enum class Scan : uint8_t { ok, incomplete, damaged };
// constant: true, false, null; word: a scalar that is no JSON, such as N/A
enum class JsonType : uint8_t { none, text, number, object, array, constant, word };

// One value as it stands in the file; `raw` of a text is without its quotes and still escaped.
struct JsonValue {
  JsonType type = JsonType::none;
  std::string_view raw;
};

class JsonScanner {
 public:
  static constexpr int kDeepest = 256;  // nested lists and objects; deeper ones are damage
  static constexpr size_t kLongestWord = 64;

  JsonScanner(const char* begin, const char* end) noexcept : at_(begin), end_(end) {}

  const char* at() const noexcept { return at_; }
  void space() noexcept {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\t' || *at_ == '\r')) ++at_;
  }
  // Whether something was taken since `strict()` that Python's json would refuse.
  bool loose() const noexcept { return loose_; }
  void strict() noexcept { loose_ = false; }
  // Any value, over which the scanner moves; what is inside lists and objects is checked, not told.
  Scan value(JsonValue& found) noexcept;
  // Calls take(key) for every member, which must move the scanner over its value; the scanner stands at '{'.
  template <typename Take>
  Scan members(Take&& take);

 private:
  Scan text(std::string_view& raw) noexcept;
  Scan scalar(JsonType& type) noexcept;
  Scan nested() noexcept;
  Scan here() const noexcept { return at_ == end_ ? Scan::incomplete : Scan::damaged; }

  const char* at_;
  const char* end_;
  bool loose_ = false;
};

template <typename Take>
Scan JsonScanner::members(Take&& take) {
  ++at_;
  space();
  if (at_ != end_ && *at_ == '}') {
    ++at_;
    return Scan::ok;
  }
  for (;;) {
    std::string_view key;
    if (at_ == end_ || *at_ != '"') return here();
    if (const Scan scan = text(key); scan != Scan::ok) return scan;
    space();
    if (at_ == end_ || *at_ != ':') return here();
    ++at_;
    space();
    if (const Scan scan = take(key); scan != Scan::ok) return scan;
    space();
    if (at_ == end_) return Scan::incomplete;
    const char next = *at_;
    if (next != ',' && next != '}') return Scan::damaged;
    ++at_;
    if (next == '}') return Scan::ok;
    space();
  }
}

// Text without escapes as UTF-8; half of a surrogate pair becomes U+FFFD. A backslash that escapes nothing stays.
std::string unescaped(std::string_view raw);
// A path whose writer did not escape its backslashes: only two of them are one.
std::string unescaped_path(std::string_view raw);
// Whether a text holds a backslash that escapes nothing, or a control character, which no path has.
bool has_bare_backslash(std::string_view raw) noexcept;

// A number as Python would take it: a whole one exactly where it fits into 62 bits, any other as a double.
struct Number {
  double real = 0;
  std::optional<int64_t> whole;  // also of a real one, cut off towards zero
  std::optional<uint64_t> bits;  // of a whole one that fits into 64 bits, with or without a sign
};

// Of a number or of a text that holds one; nothing for anything else.
std::optional<Number> number_of(const JsonValue& value);

}  // namespace leadline::offline
