// Functions that a framework runs because it is observed. What CPU samples find in them is part of what measuring
// costs, not the program's own. Any thread; whoever adds them does so before its events come.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace leadline {

class ObservingFunctions {
 public:
  // By its first instruction, once; beyond what there is room for nothing is known.
  void add(uintptr_t function) noexcept {
    if (function == 0 || holds(function)) return;
    for (std::atomic<uintptr_t>& known : known_) {
      uintptr_t none = 0;
      if (known.compare_exchange_strong(none, function)) return;
    }
  }
  bool holds(uintptr_t function) const noexcept {
    for (const std::atomic<uintptr_t>& known : known_) {
      const uintptr_t one = known.load(std::memory_order_relaxed);
      if (one == 0) return false;
      if (one == function) return true;
    }
    return false;
  }
  // Whether one lies in [begin, end).
  bool any_in(uintptr_t begin, uintptr_t end) const noexcept {
    for (const std::atomic<uintptr_t>& known : known_) {
      const uintptr_t one = known.load(std::memory_order_relaxed);
      if (one == 0) return false;
      if (one >= begin && one < end) return true;
    }
    return false;
  }

 private:
  std::array<std::atomic<uintptr_t>, 24> known_{};
};

}  // namespace leadline
