// Texts of NVTX ranges without an allocation: names in UTF-8, and the detail of a range's region.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "providers/nvidia/nvtx_abi.h"

namespace leadline::nvidia {

// A text of bounded length; what does not fit is left out.
template <std::size_t kSize>
class FixedText {
 public:
  const char* c_str() const noexcept { return text_.data(); }
  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  // All of it or nothing; false: nothing.
  bool append(std::string_view more) noexcept {
    if (more.size() >= kSize - size_) return false;
    more.copy(text_.data() + size_, more.size());
    shorten(size_ + more.size());
    return true;
  }
  void shorten(std::size_t size) noexcept {
    size_ = size;
    text_[size] = '\0';
  }

 private:
  std::array<char, kSize> text_{};
  std::size_t size_ = 0;
};

using RangeName = FixedText<256>;
using RangeDetail = FixedText<512>;

// Cut at a whole character where it is too long.
void append_utf8(RangeName* name, const wchar_t* text) noexcept;

// A JSON object; empty when there is nothing to say. A field that does not fit is left out.
void append_detail(RangeDetail* detail, std::string_view domain, std::string_view category,
                   const nvtx::EventAttributes* attributes, bool payload_varies) noexcept;

}  // namespace leadline::nvidia
