// Tables of plug-ins that are followed: what stood in a slot, ours in its place, and back.
//
// A table lives as long as its plug-in, which is as long as the process. What stood in a slot is kept for good, since a
// caller may have taken our function from the table and call it at any time.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include "providers/pjrt/pjrt_abi.h"

namespace leadline::pjrt {

inline constexpr std::size_t kMostTables = 4;
inline constexpr std::size_t kSlots = 128;

struct Followed {
  std::atomic<Table*> table{nullptr};
  std::array<std::atomic<Function>, kSlots> original{};
  std::atomic<std::int32_t> device_type{7};  // as in leadline_memory_event, known when a client was made
  bool replaced = false;                     // under the provider's lock

  bool has(Slot slot) const noexcept { return original[slot].load(std::memory_order_acquire) != nullptr; }
  Error* call(Slot slot, Arguments* arguments) const noexcept {
    return original[slot].load(std::memory_order_acquire)(arguments);
  }
};

Followed& followed(std::size_t number) noexcept;

// Ours in the slots of this table. A sentence where that cannot be, else empty. Known tables are followed again.
std::string follow(Table* table);
// What stood there, wherever ours still stands.
void put_back_all() noexcept;

}  // namespace leadline::pjrt
