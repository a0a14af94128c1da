// Fields of a protocol buffers message, one after the other. Bytes may be anybody's: nothing outside of them is read,
// and what is no message ends with ok() false.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace leadline::xla {

struct Field {
  uint32_t number = 0;
  uint32_t wire = 0;       // 0 varint, 1 eight bytes, 2 length and bytes, 5 four bytes
  uint64_t value = 0;      // of the wire types 0, 1 and 5
  std::string_view bytes;  // of the wire type 2

  int64_t integer() const noexcept { return static_cast<int64_t>(value); }
  double number_of() const noexcept {
    double number = 0;
    std::memcpy(&number, &value, sizeof number);
    return number;
  }
  bool is(uint32_t field_number, uint32_t wire_type) const noexcept {
    return number == field_number && wire == wire_type;
  }
};

class Wire {
 public:
  explicit Wire(std::string_view bytes) noexcept
      : at_(reinterpret_cast<const unsigned char*>(bytes.data())), end_(at_ + bytes.size()) {}

  bool ok() const noexcept { return ok_; }
  bool done() const noexcept { return at_ == end_; }

  // False at the end of the message and where it is damaged.
  bool next(Field* field) noexcept {
    if (at_ == end_ || !ok_) return false;
    uint64_t key = 0;
    if (!varint(&key)) return false;
    field->number = static_cast<uint32_t>(key >> 3);
    field->wire = static_cast<uint32_t>(key & 7);
    switch (field->wire) {
      case 0:
        return varint(&field->value);
      case 1:
        return fixed<uint64_t>(&field->value);
      case 5: {
        uint64_t small = 0;
        if (!fixed<uint32_t>(&small)) return false;
        field->value = small;
        return true;
      }
      case 2: {
        uint64_t length = 0;
        if (!varint(&length)) return false;
        if (length > static_cast<uint64_t>(end_ - at_)) return damaged();
        field->bytes = {reinterpret_cast<const char*>(at_), static_cast<size_t>(length)};
        at_ += length;
        return true;
      }
      default:
        return damaged();
    }
  }

  bool varint(uint64_t* out) noexcept {
    uint64_t value = 0;
    for (uint32_t shift = 0; at_ != end_ && shift < 70; shift += 7) {
      const unsigned char byte = *at_++;
      if (shift < 64) value |= uint64_t{byte & 0x7fu} << shift;
      if ((byte & 0x80u) == 0) {
        *out = value;
        return true;
      }
    }
    return damaged();
  }

 private:
  template <typename T>
  bool fixed(uint64_t* out) noexcept {
    if (static_cast<size_t>(end_ - at_) < sizeof(T)) return damaged();
    T value = 0;
    std::memcpy(&value, at_, sizeof value);
    at_ += sizeof value;
    *out = value;
    return true;
  }
  bool damaged() noexcept {
    ok_ = false;
    return false;
  }

  const unsigned char* at_;
  const unsigned char* end_;
  bool ok_ = true;
};

// A repeated integer, whichever of its two forms this field has.
template <typename Visit>
bool integers(const Field& field, const Visit& visit) noexcept {
  if (field.wire == 0) {
    visit(field.integer());
    return true;
  }
  if (field.wire != 2) return false;
  Wire packed(field.bytes);
  uint64_t value = 0;
  while (!packed.done()) {
    if (!packed.varint(&value)) return false;
    visit(static_cast<int64_t>(value));
  }
  return true;
}

}  // namespace leadline::xla
