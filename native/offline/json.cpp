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

bool escapes(char letter) noexcept { return letter != 0 && std::strchr("\"\\/bfnrt", letter) != nullptr; }

// Letters of a scalar: those of numbers and of words such as N/A, -nan(ind) and 0x7f.
bool in_word(char letter) noexcept {
  return digit(letter) || (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
         (letter != 0 && std::strchr("+-._/#%()$@?<>*'~", letter) != nullptr);
}

bool ends_scalar(char letter) noexcept {
  return letter == ',' || letter == '}' || letter == ']' || letter == ' ' || (letter >= '\t' && letter <= '\r');
}

// As JSON and Python's json have it.
bool is_number(std::string_view word) noexcept {
  if (word == "NaN") return true;
  const char* at = word.data();
  const char* const end = at + word.size();
  const auto digits = [&] {
    const char* const begin = at;
    while (at != end && digit(*at)) ++at;
    return at != begin;
  };
  if (at != end && *at == '-') ++at;
  if (std::string_view(at, static_cast<size_t>(end - at)) == "Infinity") return true;
  if (at != end && *at == '0') {
    ++at;
  } else if (!digits()) {
    return false;
  }
  if (at != end && *at == '.' && (++at, !digits())) return false;
  if (at != end && (*at == 'e' || *at == 'E')) {
    ++at;
    if (at != end && (*at == '+' || *at == '-')) ++at;
    if (!digits()) return false;
  }
  return at == end;
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
      if (end_ - at_ <= 4) return Scan::incomplete;
      for (int place = 1; place <= 4; ++place) loose_ |= hex_digit(at_[place]) < 0;
    } else {
      loose_ |= !escapes(*at_);
    }
    ++at_;
  }
}

// Whatever stands up to the next comma, bracket or space; what it is decides its form.
Scan JsonScanner::scalar(JsonType& type) noexcept {
  const char* const begin = at_;
  while (at_ != end_ && in_word(*at_)) ++at_;
  const std::string_view word(begin, static_cast<size_t>(at_ - begin));
  if (word.size() > kLongestWord) return Scan::damaged;
  if (at_ == end_) return Scan::incomplete;
  if (word.empty() || !ends_scalar(*at_)) return Scan::damaged;
  if (is_number(word)) {
    type = JsonType::number;
  } else if (word == "true" || word == "false" || word == "null") {
    type = JsonType::constant;
  } else {
    type = JsonType::word;
    loose_ = true;
  }
  return Scan::ok;
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
    default:
      scan = scalar(found.type);
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

// Whether the four letters from there on are the digits of \u.
bool is_code(std::string_view raw, size_t at) noexcept {
  if (raw.size() < at + 4) return false;
  for (size_t place = 0; place < 4; ++place) {
    if (hex_digit(raw[at + place]) < 0) return false;
  }
  return true;
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
      if (!escapes(raw[at])) plain += '\\';
      plain += control(raw[at]);
      continue;
    }
    if (!is_code(raw, at + 1)) {
      plain += "\\u";
      continue;
    }
    uint32_t code = four_digits(raw, at + 1);
    at += 4;
    if (code >= 0xD800 && code < 0xDC00 && raw.size() - at > 6 && raw[at + 1] == '\\' && raw[at + 2] == 'u' &&
        is_code(raw, at + 3)) {
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

std::string unescaped_path(std::string_view raw) {
  std::string plain;
  plain.reserve(raw.size());
  for (size_t at = 0; at < raw.size(); ++at) {
    plain += raw[at];
    if (raw[at] == '\\' && at + 1 < raw.size() && raw[at + 1] == '\\') ++at;
  }
  return plain;
}

bool has_bare_backslash(std::string_view raw) noexcept {
  for (size_t at = raw.find('\\'); at != std::string_view::npos && at + 1 < raw.size(); at = raw.find('\\', at + 2)) {
    const char next = raw[at + 1];
    if (next == 'u' ? !is_code(raw, at + 2) : next != '"' && next != '\\' && next != '/') return true;
  }
  return false;
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
    found.bits = static_cast<uint64_t>(whole);
    return found;
  }
  if (uint64_t large = 0; raw.front() != '-') {
    if (const auto [last, error] = std::from_chars(begin, end, large); error == std::errc() && last == end) {
      found.bits = large;
    }
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
