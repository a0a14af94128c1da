// The correlation id that the SDK hands back with a record: which call, which of a graph's nodes, which stream.
#pragma once

#include <cstdint>

#include "providers/amd/stream_numbers.h"

namespace leadline::amd {

struct Correlation {
  static constexpr std::uint32_t kMostNodes = (1u << 20) - 1;

  std::uint32_t call = 0;  // 0: none
  std::uint32_t node = 0;  // of a replayed graph, from 1; 0: of none
  std::uint32_t stream = StreamNumbers::kUnknown;

  // Of work that was handed to a device while nothing was measured.
  static constexpr std::uint64_t kNotMeasured = std::uint64_t{kMostNodes} << 32;

  std::uint64_t pack() const noexcept { return std::uint64_t{stream} << 52 | std::uint64_t{node} << 32 | call; }
  static Correlation unpack(std::uint64_t value) noexcept {
    return {static_cast<std::uint32_t>(value), static_cast<std::uint32_t>(value >> 32) & kMostNodes,
            static_cast<std::uint32_t>(value >> 52)};
  }
};

}  // namespace leadline::amd
