// Hashing for the look-ups on the path of an event: a few cycles, good spread, no promise against an attacker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace leadline {

// Folds the 128-bit product of two words, the mixing step of the wyhash family.
inline std::uint64_t hash_mix(std::uint64_t a, std::uint64_t b) noexcept {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a ^ 0x9e3779b97f4a7c15u) * (b ^ 0xd6e8feb86659fd93u);
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

inline std::uint64_t hash_bytes(const char* data, std::size_t size) noexcept {
  const auto word = [](const char* at) {
    std::uint64_t value;
    std::memcpy(&value, at, sizeof value);
    return value;
  };
  const auto half = [](const char* at) -> std::uint64_t {
    std::uint32_t value;
    std::memcpy(&value, at, sizeof value);
    return value;
  };
  std::uint64_t state = size;
  if (size > 16) {
    std::size_t left = size;
    for (; left > 16; left -= 16, data += 16) state = hash_mix(state ^ word(data), word(data + 8));
    // The last 16 bytes may overlap what was read: cheaper than treating a tail.
    return hash_mix(state ^ word(data + left - 16), word(data + left - 8));
  }
  if (size >= 8) return hash_mix(state ^ word(data), word(data + size - 8));
  if (size >= 4) return hash_mix(state ^ half(data), half(data + size - 4));
  if (size == 0) return hash_mix(0, 0);
  const auto byte = [data](std::size_t i) { return static_cast<std::uint64_t>(static_cast<unsigned char>(data[i])); };
  return hash_mix(state, byte(0) | byte(size / 2) << 8 | byte(size - 1) << 16);
}

}  // namespace leadline
