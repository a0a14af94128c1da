// Where a call's arguments stand in the structure that a vendor's profiling library hands to callbacks.
#pragma once

#include <cstdint>
#include <cstring>

namespace leadline::gpu {

// How many bytes into the structure an argument stands; kNone where the call has no such argument.
struct ArgumentLayout {
  static constexpr std::int8_t kNone = -1;
  std::int8_t stream = kNone;
  std::int8_t bytes = kNone;
  std::int8_t rows = kNone;  // factor of `bytes`
  std::int8_t event = kNone;
  std::int8_t address = kNone;      // address (or handle) freed
  std::int8_t address_out = kNone;  // pointer to where the address allocated is written
  std::int8_t source = kNone;       // of a copy
  std::int8_t destination = kNone;
  std::int8_t graph = kNone;  // of which an executable one is made
};

template <class T>
T argument(const void* arguments, std::int8_t offset) noexcept {
  T value;
  std::memcpy(&value, static_cast<const char*>(arguments) + offset, sizeof value);
  return value;
}

}  // namespace leadline::gpu
