// Texts of NVTX ranges: names in UTF-8, and the detail of a range's region.
#pragma once

#include <string>
#include <string_view>

#include "providers/nvidia/nvtx_abi.h"

namespace leadline::nvidia {

// The detail of a range's region, a JSON object; empty when there is nothing to say.
std::string nvtx_detail(std::string_view domain, std::string_view category, std::uint32_t category_id,
                        const nvtx::EventAttributes* attributes, bool payload_varies);
std::string utf8_of(const wchar_t* text);

// Appends `text` as the inside of a JSON string; control characters are left out.
void append_escaped(std::string* json, std::string_view text);

}  // namespace leadline::nvidia
