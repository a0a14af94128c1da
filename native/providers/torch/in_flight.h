// Collectives on their way into the flight recorder: which one this thread is inside, and when its work has ended.
#pragma once

#include <cstdint>

#include "base/flight_recorder.h"

namespace leadline::torch {

// While it lives, this thread is inside the collective of that number (0: inside none that is recorded).
class InFlight {
 public:
  explicit InFlight(uint64_t number) noexcept;
  // The call has come back, on the thread that made it.
  void end() noexcept;

  // The collective that this thread is inside; 0: none.
  static uint64_t current() noexcept;
  // An operator of torch's communication library begins: its number, 0 for what is no collective (waiting for one).
  static uint64_t begin(const char* operator_name) noexcept;
  // The wrapper that says which collective it is, and of which group, begins: what it says belongs to the operator
  // around it, or else to a collective of its own, whose number is the answer.
  static uint64_t describe(const FlightRecorder::Where& where) noexcept;
  // The scope in which a backend works off what was begun: it ends when the work has, often on another thread.
  static void work_began(const void* token) noexcept;
  static void work_ended(const void* token) noexcept;

 private:
  uint64_t number_;
  uint64_t around_;
};

}  // namespace leadline::torch
