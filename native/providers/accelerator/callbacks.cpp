#include "providers/accelerator/callbacks.h"

#include <array>
#include <atomic>
#include <type_traits>

#include "providers/accelerator/frame.h"

namespace leadline::accelerator {
namespace {

constexpr std::uint32_t kThunkBytes = 16;
enum : std::uint32_t { kFree, kWriting, kArmed };

struct Slot {
  std::atomic<std::uint32_t> state{kFree};
  std::atomic<void*> original{nullptr};
  std::uint32_t session = 0;
  Request request;
};

std::array<Slot, Callbacks::kThunks>& slots() noexcept {
  static_assert(std::is_trivially_destructible_v<Slot>, "they may be called until the very end");
  static std::array<Slot, Callbacks::kThunks> made;
  return made;
}

// Slots are taken in turn, so that one that was given back rests for as long as can be: a library that calls twice
// then still finds the function it was given.
std::atomic<std::uint32_t> next_slot{0};

}  // namespace

void* Callbacks::arm(void* original, const Request& request, std::uint32_t session) noexcept {
  for (std::uint32_t tries = 0; tries < kThunks; ++tries) {
    const std::uint32_t number = next_slot.fetch_add(1, std::memory_order_relaxed) % kThunks;
    Slot& slot = slots()[number];
    std::uint32_t free = kFree;
    if (!slot.state.compare_exchange_strong(free, kWriting, std::memory_order_acq_rel)) continue;
    slot.original.store(original, std::memory_order_relaxed);
    slot.session = session;
    slot.request = request;
    slot.state.store(kArmed, std::memory_order_release);
    return const_cast<char*>(leadline_callback_code + number * kThunkBytes);
  }
  return nullptr;
}

void Callbacks::disarm(const void* thunk) noexcept {
  const auto number =
      static_cast<std::uint32_t>(static_cast<const char*>(thunk) - leadline_callback_code) / kThunkBytes;
  std::uint32_t armed = kArmed;
  slots()[number].state.compare_exchange_strong(armed, kFree, std::memory_order_acq_rel);
}

Callbacks::Called Callbacks::called(std::uint32_t number) noexcept {
  Slot& slot = slots()[number];
  Called called;
  called.original = slot.original.load(std::memory_order_acquire);
  std::uint32_t armed = kArmed;
  if (slot.state.compare_exchange_strong(armed, kWriting, std::memory_order_acq_rel)) {
    called.request = slot.request;
    called.session = slot.session;
    slot.state.store(kFree, std::memory_order_release);
  }
  return called;
}

}  // namespace leadline::accelerator
