#include "providers/nvidia/nvtx_text.h"

#include <cstdint>
#include <cstdio>

namespace leadline::nvidia {
namespace {

using nvtx::EventAttributes;

// One field of a JSON object: taken back as a whole when a part of it does not fit.
class Field {
 public:
  Field(RangeDetail* json, std::string_view name) noexcept : json_(json), begin_(json->size()) {
    add(json->empty() ? "{\"" : ", \"");
    add(name);
    add("\": ");
  }
  ~Field() {
    // The closing brace must still fit.
    if (!fits_ || !json_->append("}")) {
      json_->shorten(begin_);
    } else {
      json_->shorten(json_->size() - 1);
    }
  }
  Field(const Field&) = delete;
  Field& operator=(const Field&) = delete;

  void add(std::string_view text) noexcept { fits_ = fits_ && json_->append(text); }
  // In quotes; control characters are left out.
  void add_quoted(std::string_view text) noexcept {
    add("\"");
    for (const char& c : text) {
      if (c == '"' || c == '\\') add("\\");
      if (static_cast<unsigned char>(c) >= 0x20) add({&c, 1});
    }
    add("\"");
  }

 private:
  RangeDetail* json_;
  std::size_t begin_;
  bool fits_ = true;
};

template <class... Values>
void add_number(Field* field, const char* format, Values... values) noexcept {
  std::array<char, 40> number{};
  std::snprintf(number.data(), number.size(), format, values...);
  field->add(number.data());
}

void add_payload(Field* field, const EventAttributes& a) noexcept {
  switch (a.payload_type) {
    case nvtx::PayloadType::kUint64:
      return add_number(field, "%llu", static_cast<unsigned long long>(a.payload.u64));
    case nvtx::PayloadType::kInt64:
      return add_number(field, "%lld", static_cast<long long>(a.payload.i64));
    case nvtx::PayloadType::kDouble:
      return add_number(field, "%.17g", a.payload.f64);
    case nvtx::PayloadType::kUint32:
      return add_number(field, "%u", a.payload.u32);
    case nvtx::PayloadType::kInt32:
      return add_number(field, "%d", a.payload.i32);
    default:
      return add_number(field, "%.9g", static_cast<double>(a.payload.f32));
  }
}

}  // namespace

void append_utf8(RangeName* name, const wchar_t* text) noexcept {
  for (; text && *text; ++text) {
    const auto c = static_cast<std::uint32_t>(*text);  // NOLINT(bugprone-signed-char-misuse): a wide character
    const auto tail = [c](int shift) { return static_cast<char>(0x80 | (c >> shift & 0x3f)); };
    std::array<char, 4> bytes{};
    std::size_t count = 0;
    if (c < 0x80) {
      bytes[count++] = static_cast<char>(c);
    } else if (c < 0x800) {
      bytes[count++] = static_cast<char>(0xc0 | c >> 6);
    } else if (c < 0x10000) {
      bytes[count++] = static_cast<char>(0xe0 | c >> 12);
      bytes[count++] = tail(6);
    } else {
      bytes[count++] = static_cast<char>(0xf0 | (c >> 18 & 0x07));
      bytes[count++] = tail(12);
      bytes[count++] = tail(6);
    }
    if (c >= 0x80) bytes[count++] = tail(0);
    if (!name->append({bytes.data(), count})) return;
  }
}

void append_detail(RangeDetail* detail, std::string_view domain, std::string_view category, const EventAttributes* a,
                   bool payload_varies) noexcept {
  if (!domain.empty()) Field(detail, "domain").add_quoted(domain);
  if (!category.empty()) {
    Field(detail, "category").add_quoted(category);
  } else if (a && a->category != 0) {
    Field field(detail, "category");
    add_number(&field, "%u", a->category);
  }
  if (a && a->payload_type != nvtx::PayloadType::kNone) {
    Field field(detail, "payload");
    payload_varies ? field.add_quoted("varies") : add_payload(&field, *a);
  }
  if (a && a->color_type == nvtx::ColorType::kArgb) {
    Field field(detail, "color");
    add_number(&field, "\"#%06x\"", a->color & 0xffffffu);
  }
  if (!detail->empty()) detail->append("}");
}

}  // namespace leadline::nvidia
