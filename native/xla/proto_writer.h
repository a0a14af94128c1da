// For tests: messages in the wire format of protocol buffers, field by field.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace leadline::xla::test {

class Message {
 public:
  Message& number(uint32_t field, uint64_t value) {
    varint(uint64_t{field} << 3);
    varint(value);
    return *this;
  }
  Message& bytes(uint32_t field, std::string_view value) {
    varint(uint64_t{field} << 3 | 2);
    varint(value.size());
    text_.append(value);
    return *this;
  }
  Message& message(uint32_t field, const Message& value) { return bytes(field, value.text()); }
  Message& append(const Message& value) {
    text_ += value.text_;
    return *this;
  }
  const std::string& text() const noexcept { return text_; }

 private:
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) text_.push_back(static_cast<char>(value | 0x80));
    text_.push_back(static_cast<char>(value));
  }
  std::string text_;
};

// Four bytes of a text changed, elsewhere each time and alike in each run.
class Damage {
 public:
  std::string of(std::string changed) {
    for (int i = 0; i < 4; ++i) {
      random_ = random_ * 1664525 + 1013904223;
      changed[random_ % changed.size()] = static_cast<char>(random_ >> 24);
    }
    return changed;
  }

 private:
  uint32_t random_ = 1;
};

}  // namespace leadline::xla::test
