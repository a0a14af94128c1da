// What the fake libraries and the tests that drive them share beyond the vendor's own signatures.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace leadline::testing {

// The "function" handle of a launch.
struct FakeKernel {
  const char* name = "kernel";
  std::int64_t duration_ns = 1000;
  std::int32_t registers = 32;
  std::int32_t static_shared = 0;
  bool fails = false;  // the launch returns an error and runs nothing
};

// An address nobody else has.
inline void* fake_memory(std::size_t bytes) {
  static std::atomic<std::uint64_t> next{0x7f0000000000};
  return reinterpret_cast<void*>(next.fetch_add((bytes + 511) / 512 * 512));
}

}  // namespace leadline::testing
