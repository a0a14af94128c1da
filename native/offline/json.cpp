#include "offline/json.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>

namespace leadline::offline {

namespace {

constexpr int64_t kLargest = int64_t{1} << 62;

bool digit(char letter) noexcept { return letter >= '0' && letter <= '9'; }

int hex_digit(char letter) noexcept {
  if (digit(letter)) return letter - '0';
  const char lower = static_cast<char>(letter | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// Where a text may not simply go on: at its end and at an escape.
constexpr auto kStops = [] {
  std::array<bool, 256> stops{};
  stops['"'] = stops['\\'] = true;
  return stops;
}();

constexpr uint64_t kOnes = 0x0101010101010101;

// Whether one of eight letters is this one.
bool holds(uint64_t letters, char wanted) noexcept {
  const uint64_t other = letters ^ (kOnes * static_cast<unsigned char>(wanted));
  return ((other - kOnes) & ~other & (kOnes << 7)) != 0;
}

// The first letter at which a text may not simply go on; `end` where none is.
const char* stop_in(const char* at, const char* end) noexcept {
  for (uint64_t letters; end - at >= 8; at += 8) {
    std::memcpy(&letters, at, 8);
    if (holds(letters, '"') || holds(letters, '\\')) break;
  }
  while (at != end && !kStops[static_cast<unsigned char>(*at)]) ++at;
  return at;
}

}  // namespace

Scan JsonScanner::text(std::string_view& raw) noexcept {
  const char* const begin = ++at_;
  for (;;) {
    at_ = stop_in(at_, end_);
    if (at_ == end_) return Scan::incomplete;
    if (*at_ == '"') {
      raw = {begin, static_cast<size_t>(at_ - begin)};
      ++at_;
      return Scan::ok;
    }
    if (++at_ == end_) return Scan::incomplete;
    if (*at_ == 'u') {
      for (int place = 0; place < 4; ++place) {
        if (++at_ == end_) return Scan::incomplete;
        if (hex_digit(*at_) < 0) return Scan::damaged;
      }
    } else if (std::strchr("\"\\/bfnrt", *at_) == nullptr || *at_ == 0) {
      return Scan::damaged;
    }
    ++at_;
  }
}

Scan JsonScanner::word(std::string_view expected) noexcept {
  for (const char letter : expected) {
    if (at_ == end_) return Scan::incomplete;
    if (*at_ != letter) return Scan::damaged;
    ++at_;
  }
  return Scan::ok;
}

Scan JsonScanner::number() noexcept {
  if (*at_ == '-' && ++at_ == end_) return Scan::incomplete;
  if (*at_ == 'I') return word("Infinity");
  if (!digit(*at_)) return Scan::damaged;
  if (*at_ == '0') {
    ++at_;
  } else {
    while (at_ != end_ && digit(*at_)) ++at_;
  }
  // digits must follow a point and an exponent; a number at the end of what was read may go on
  if (at_ != end_ && *at_ == '.') {
    ++at_;
    if (at_ == end_ || !digit(*at_)) return here();
    while (at_ != end_ && digit(*at_)) ++at_;
  }
  if (at_ != end_ && (*at_ == 'e' || *at_ == 'E')) {
    ++at_;
    if (at_ != end_ && (*at_ == '+' || *at_ == '-')) ++at_;
    if (at_ == end_ || !digit(*at_)) return here();
    while (at_ != end_ && digit(*at_)) ++at_;
  }
  return at_ == end_ ? Scan::incomplete : Scan::ok;
}

Scan JsonScanner::value(JsonValue& found) noexcept {
  if (at_ == end_) return Scan::incomplete;
  const char* const begin = at_;
  Scan scan = Scan::ok;
  switch (*at_) {
    case '"':
      found.type = JsonType::text;
      return text(found.raw);
    case '{':
    case '[':
      found.type = *at_ == '{' ? JsonType::object : JsonType::array;
      scan = nested();
      break;
    case 't':
      found.type = JsonType::constant;
      scan = word("true");
      break;
    case 'f':
      found.type = JsonType::constant;
      scan = word("false");
      break;
    case 'n':
      found.type = JsonType::constant;
      scan = word("null");
      break;
    case 'N':
      found.type = JsonType::number;
      scan = word("NaN");
      break;
    case 'I':
      found.type = JsonType::number;
      scan = word("Infinity");
      break;
    default:
      if (*at_ != '-' && !digit(*at_)) return Scan::damaged;
      found.type = JsonType::number;
      scan = number();
  }
  found.raw = {begin, static_cast<size_t>(at_ - begin)};
  return scan;
}

// Lists and objects without recursion: `inside` remembers for every level whether it is an object.
Scan JsonScanner::nested() noexcept {
  std::array<bool, kDeepest> inside;
  int depth = 0;
  inside[depth++] = *at_ == '{';
  ++at_;
  bool first = true;
  for (;;) {
    space();
    if (at_ == end_) return Scan::incomplete;
    const bool object = inside[depth - 1];
    if (*at_ == (object ? '}' : ']')) {
      ++at_;
      if (--depth == 0) return Scan::ok;
      first = false;
      continue;
    }
    if (!first) {
      if (*at_ != ',') return Scan::damaged;
      ++at_;
      space();
      if (at_ == end_) return Scan::incomplete;
    }
    first = false;
    if (object) {
      std::string_view key;
      if (*at_ != '"') return Scan::damaged;
      if (const Scan scan = text(key); scan != Scan::ok) return scan;
      space();
      if (at_ == end_ || *at_ != ':') return here();
      ++at_;
      space();
      if (at_ == end_) return Scan::incomplete;
    }
    if (*at_ == '{' || *at_ == '[') {
      if (depth == kDeepest) return Scan::damaged;
      inside[depth++] = *at_ == '{';
      ++at_;
      first = true;
      continue;
    }
    JsonValue skipped;
    if (const Scan scan = value(skipped); scan != Scan::ok) return scan;
  }
}

namespace {

void append_utf8(std::string& target, uint32_t code) {
  if (code < 0x80) {
    target += static_cast<char>(code);
  } else if (code < 0x800) {
    target += static_cast<char>(0xC0 | (code >> 6));
    target += static_cast<char>(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    target += static_cast<char>(0xE0 | (code >> 12));
    target += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
    target += static_cast<char>(0x80 | (code & 0x3F));
  } else {
    target += static_cast<char>(0xF0 | (code >> 18));
    target += static_cast<char>(0x80 | ((code >> 12) & 0x3F));
    target += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
    target += static_cast<char>(0x80 | (code & 0x3F));
  }
}

uint32_t four_digits(std::string_view raw, size_t at) noexcept {
  uint32_t code = 0;
  for (size_t place = 0; place < 4; ++place) code = code << 4 | static_cast<uint32_t>(hex_digit(raw[at + place]));
  return code;
}

char control(char letter) noexcept {
  switch (letter) {
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    default:
      return letter;
  }
}

}  // namespace

std::string unescaped(std::string_view raw) {
  std::string plain;
  plain.reserve(raw.size());
  for (size_t at = 0; at < raw.size(); ++at) {
    if (raw[at] != '\\') {
      plain += raw[at];
      continue;
    }
    if (raw[++at] != 'u') {
      plain += control(raw[at]);
      continue;
    }
    uint32_t code = four_digits(raw, at + 1);
    at += 4;
    if (code >= 0xD800 && code < 0xDC00 && raw.size() - at > 6 && raw[at + 1] == '\\' && raw[at + 2] == 'u') {
      const uint32_t low = four_digits(raw, at + 3);
      if (low >= 0xDC00 && low < 0xE000) {
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
        at += 6;
      }
    }
    append_utf8(plain, code >= 0xD800 && code < 0xE000 ? 0xFFFD : code);
  }
  return plain;
}

std::optional<Number> number_of(const JsonValue& value) {
  if (value.type != JsonType::number && value.type != JsonType::text) return std::nullopt;
  const std::string_view raw = value.raw;
  const char* const begin = raw.data();
  const char* const end = begin + raw.size();
  if (raw.empty()) return std::nullopt;
  Number found;
  int64_t whole = 0;
  if (const auto [last, error] = std::from_chars(begin, end, whole); error == std::errc() && last == end) {
    found.real = static_cast<double>(whole);
    if (whole > -kLargest && whole < kLargest) found.whole = whole;
    return found;
  }
  const auto [last, error] = std::from_chars(begin, end, found.real);
  if (last != end) return std::nullopt;
  if (error == std::errc::result_out_of_range) {  // too large or too small for a double: strtod says which
    found.real = std::strtod(std::string(raw).c_str(), nullptr);
  } else if (error != std::errc()) {
    return std::nullopt;
  }
  if (std::abs(found.real) < static_cast<double>(kLargest)) found.whole = static_cast<int64_t>(found.real);
  return found;
}

}  // namespace leadline::offline
