// Where and for what threads wait: each is looked at some twenty times a second, by the thread that looks after timers.
//
// How long a thread waited is measured: the time since the last look, less what it ran and what it stood in line for a
// core. Only the place is a sample: what the thread waits for when it is looked at.
#pragma once

#include "providers/cpu/booker.h"

namespace leadline::cpu {

class Waits {
 public:
  explicit Waits(Booker& booker) : booker_(booker) {}

  // Whether this system says what threads wait for.
  static bool available() noexcept;
  // Time passes from now on; what was before is nobody's.
  static void begin(SampledThread& thread) noexcept;
  // Raises nothing.
  void look(SampledThread& thread) noexcept;
  // What is known and not booked yet.
  void rest(SampledThread& thread) noexcept;

 private:
  Booker& booker_;
};

}  // namespace leadline::cpu
