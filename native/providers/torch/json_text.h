// Text inside a JSON string.
#pragma once

#include <string>
#include <string_view>

namespace leadline::torch {

inline void append_escaped(std::string* out, std::string_view text) {
  for (const char c : text) {
    if (c == '"' || c == '\\') out->push_back('\\');
    out->push_back(static_cast<unsigned char>(c) < 0x20 ? ' ' : c);
  }
}

}  // namespace leadline::torch
