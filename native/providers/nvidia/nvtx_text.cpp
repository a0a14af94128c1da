#include "providers/nvidia/nvtx_text.h"

#include <array>
#include <cstdio>

namespace leadline::nvidia {

using nvtx::EventAttributes;

void append_escaped(std::string* json, std::string_view text) {
  for (const char c : text) {
    if (c == '"' || c == '\\') *json += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) *json += c;
  }
}

std::string utf8_of(const wchar_t* text) {
  std::string out;
  for (; text && *text; ++text) {
    const auto c = static_cast<std::uint32_t>(*text);  // NOLINT(bugprone-signed-char-misuse): a wide character
    if (c < 0x80) {
      out += static_cast<char>(c);
    } else if (c < 0x800) {
      out += static_cast<char>(0xc0 | c >> 6);
      out += static_cast<char>(0x80 | (c & 0x3f));
    } else if (c < 0x10000) {
      out += static_cast<char>(0xe0 | c >> 12);
      out += static_cast<char>(0x80 | (c >> 6 & 0x3f));
      out += static_cast<char>(0x80 | (c & 0x3f));
    } else {
      out += static_cast<char>(0xf0 | (c >> 18 & 0x07));
      out += static_cast<char>(0x80 | (c >> 12 & 0x3f));
      out += static_cast<char>(0x80 | (c >> 6 & 0x3f));
      out += static_cast<char>(0x80 | (c & 0x3f));
    }
  }
  return out;
}

std::string nvtx_detail(std::string_view domain, std::string_view category, std::uint32_t category_id,
                        const EventAttributes* a, bool payload_varies) {
  std::string json;
  const auto field = [&json](const char* name) { json += std::string(json.empty() ? "{\"" : ", \"") + name + "\": "; };
  if (!domain.empty()) {
    field("domain");
    json += '"';
    append_escaped(&json, domain);
    json += '"';
  }
  if (!category.empty()) {
    field("category");
    json += '"';
    append_escaped(&json, category);
    json += '"';
  } else if (category_id != 0) {
    field("category");
    json += std::to_string(category_id);
  }
  if (a && a->payload_type != nvtx::PayloadType::kNone) {
    field("payload");
    std::array<char, 40> number{};
    switch (a->payload_type) {
      case nvtx::PayloadType::kUint64:
        std::snprintf(number.data(), number.size(), "%llu", static_cast<unsigned long long>(a->payload.u64));
        break;
      case nvtx::PayloadType::kInt64:
        std::snprintf(number.data(), number.size(), "%lld", static_cast<long long>(a->payload.i64));
        break;
      case nvtx::PayloadType::kDouble:
        std::snprintf(number.data(), number.size(), "%.17g", a->payload.f64);
        break;
      case nvtx::PayloadType::kUint32:
        std::snprintf(number.data(), number.size(), "%u", a->payload.u32);
        break;
      case nvtx::PayloadType::kInt32:
        std::snprintf(number.data(), number.size(), "%d", a->payload.i32);
        break;
      default:
        std::snprintf(number.data(), number.size(), "%.9g", static_cast<double>(a->payload.f32));
    }
    json += payload_varies ? "\"varies\"" : number.data();
  }
  if (a && a->color_type == nvtx::ColorType::kArgb) {
    field("color");
    std::array<char, 16> color{};
    std::snprintf(color.data(), color.size(), "\"#%06x\"", a->color & 0xffffffu);
    json += color.data();
  }
  return json.empty() ? json : json + "}";
}

}  // namespace leadline::nvidia
