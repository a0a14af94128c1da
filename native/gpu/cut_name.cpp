#include "gpu/cut_name.h"

namespace leadline::gpu {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Reads a mangled name element by element; npos: it is damaged, or of a form that is not known.
struct Scan {
  std::string_view name;
  std::size_t at = 2;
  std::string open;          // what has been opened and not closed: N, I, J, L
  bool is_prefixed = false;  // what follows belongs to a pointer, a reference or const

  char peek(std::size_t ahead = 0) const { return at + ahead < name.size() ? name[at + ahead] : '\0'; }
  bool is_between_arguments() const {
    return !is_prefixed && !open.empty() && (open.back() == 'I' || open.back() == 'J');
  }
  bool skip_behind(char end) {
    const auto found = name.find(end, at);
    if (found == std::string_view::npos) return false;
    at = found + 1;
    return true;
  }
  bool skip_value() {  // of a literal, up to its E
    while (peek() != '\0' && peek() != 'E') ++at;
    return peek() == 'E';
  }
  bool source_name() {
    std::size_t length = 0;
    while (is_digit(peek()) && length < name.size()) length = length * 10 + static_cast<std::size_t>(name[at++] - '0');
    if (length > name.size() - at) return false;
    at += length;
    return true;
  }
  bool close() {
    if (open.empty()) return false;
    open.pop_back();
    ++at;
    if (open.empty()) return false;  // the whole name: behind it stand parameters
    return open.back() != 'L' || skip_value();
  }
  bool literal() {
    open += 'L';
    ++at;
    if (peek() == '_') return false;                           // of a function or an object
    return peek() == 'N' || is_digit(peek()) || skip_value();  // of an enumeration, or of a type of one letter
  }
  bool of_d() {
    if (peek(1) == 'p') {
      is_prefixed = true;
      at += 2;
      return true;
    }
    const bool has_width = peek(1) == 'F' || peek(1) == 'B' || peek(1) == 'U';
    at += 2;
    if (!has_width) return true;
    while (is_digit(peek())) ++at;
    if (peek() == '_' || peek() == 'b') ++at;
    return true;
  }
  // One element; false at the end of what can be read.
  bool next() {
    const char c = peek();
    is_prefixed = false;
    if (is_digit(c)) return source_name();
    switch (c) {
      case '\0':
      case 'X':
      case 'F':
      case 'M':
      case 'A':
      case 'U':
      case 'C':
        return false;
      case 'S':
        if (std::string_view("tabsiod").find(peek(1)) == std::string_view::npos) return skip_behind('_');
        at += 2;
        return true;
      case 'T':
        return skip_behind('_');
      case 'N':
      case 'I':
      case 'J':
        open += c;
        ++at;
        return true;
      case 'L':
        return literal();
      case 'E':
        return close();
      case 'P':
      case 'R':
      case 'O':
      case 'K':
      case 'V':
      case 'r':
        is_prefixed = true;
        ++at;
        return true;
      case 'D':
        return of_d();
      default:
        ++at;
        return true;
    }
  }
};

}  // namespace

std::string cut_name(std::string_view mangled, std::size_t most) {
  if (!mangled.starts_with("_ZN")) return {};
  Scan scan;
  scan.name = mangled;
  std::size_t best = 0;
  std::size_t closing = 0;
  do {
    if (!scan.is_between_arguments()) continue;
    if (scan.at + scan.open.size() + 2 > most) break;
    best = scan.at;
    closing = scan.open.size();
  } while (scan.next());
  return best == 0 ? std::string() : std::string(mangled.substr(0, best)) + std::string(closing, 'E') + "vv";
}

}  // namespace leadline::gpu
