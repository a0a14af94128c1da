// CRC-32 as ZIP wants it (polynomial 0xEDB88320, reflected), eight bytes a step.
#pragma once

#include <cstddef>
#include <cstdint>

namespace leadline {

// Continues from `crc`, which is 0 at the beginning.
std::uint32_t crc32(const void* data, std::size_t size, std::uint32_t crc = 0) noexcept;

}  // namespace leadline
