#include "base/losses.h"

#include <algorithm>
#include <cstring>

namespace leadline {

void LossCounters::count(LossKind kind, std::uint64_t times, std::string_view detail) noexcept {
  const auto number = static_cast<std::size_t>(kind);
  if (number >= kLossKindCount) return;
  Counter& counter = counters_[number];
  if (!detail.empty() && counter.detail_state.load(std::memory_order_relaxed) == kNoDetail) {
    std::uint8_t expected = kNoDetail;
    if (counter.detail_state.compare_exchange_strong(expected, kBeingWritten, std::memory_order_relaxed)) {
      std::size_t size = std::min(detail.size(), kDetailBytes);
      // A cut falls between characters of UTF-8.
      while (size < detail.size() && size > 0 && (static_cast<unsigned char>(detail[size]) & 0xC0) == 0x80) --size;
      std::memcpy(counter.detail.data(), detail.data(), size);
      counter.detail_size = static_cast<std::uint16_t>(size);
      counter.detail_state.store(kHasDetail, std::memory_order_release);
    }
  }
  counter.total.fetch_add(times, std::memory_order_relaxed);
}

std::uint64_t LossCounters::total(LossKind kind) const noexcept {
  return counters_[static_cast<std::size_t>(kind)].total.load(std::memory_order_relaxed);
}

std::string LossCounters::detail(LossKind kind) const {
  const Counter& counter = counters_[static_cast<std::size_t>(kind)];
  if (counter.detail_state.load(std::memory_order_acquire) != kHasDetail) return {};
  return {counter.detail.data(), counter.detail_size};
}

void LossCounters::clear() noexcept {
  for (Counter& counter : counters_) {
    counter.total.store(0, std::memory_order_relaxed);
    counter.detail_state.store(kNoDetail, std::memory_order_relaxed);
  }
}

LossCounters& losses() noexcept {
  static constinit LossCounters counters;
  return counters;
}

}  // namespace leadline
