// The correlation id that the SDK hands back with a record: which call, which of a graph's nodes, which stream.
#pragma once

#include <cstdint>

#include "gpu/work.h"
#include "providers/amd/stream_numbers.h"

namespace leadline::amd {

struct Correlation {
  static constexpr std::uint32_t kMostNodes = (1u << 20) - 1;

  std::uint32_t call = 0;  // 0: none
  std::uint32_t node = 0;  // of a replayed graph, from 1; 0: of none. Of a copy: the memories of its ends
  std::uint32_t stream = StreamNumbers::kUnknown;

  // What is known of the host's end of a copy; 0: nothing.
  static std::uint32_t copy_of(gpu::Memory source, gpu::Memory destination) noexcept {
    return 1u << 16 | static_cast<std::uint32_t>(source) << 8 | static_cast<std::uint32_t>(destination);
  }
  gpu::Memory source_memory() const noexcept { return static_cast<gpu::Memory>(node >> 8 & 0xff); }
  gpu::Memory destination_memory() const noexcept { return static_cast<gpu::Memory>(node & 0xff); }

  // Of work that was handed to a device while nothing was measured.
  static constexpr std::uint64_t kNotMeasured = std::uint64_t{kMostNodes} << 32;

  std::uint64_t pack() const noexcept { return std::uint64_t{stream} << 52 | std::uint64_t{node} << 32 | call; }
  static Correlation unpack(std::uint64_t value) noexcept {
    return {static_cast<std::uint32_t>(value), static_cast<std::uint32_t>(value >> 32) & kMostNodes,
            static_cast<std::uint32_t>(value >> 52)};
  }
};

}  // namespace leadline::amd
