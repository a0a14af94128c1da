// roctx ranges of the program as regions, whichever of AMD's libraries tells of them.
#pragma once

#include <cstdint>

namespace leadline::amd {

// On the thread that called roctx: nothing here throws or waits.
class RoctxRanges {
 public:
  enum class Step : std::uint8_t { kPush, kPop, kStart, kStop };
  // `number`: roctx's own, of a range that is started and stopped. `shown`: it is to be told, and not only remembered.
  void take(Step step, const char* name, std::uint64_t number, bool shown) noexcept;
};

}  // namespace leadline::amd
