// Which collective and which process group a communication operator stands for, as JSON.
//
// torch wraps every collective in an operator called `record_param_comms` and puts a description of it into its
// thread-local debug information meanwhile. Without that description there is no text; never a wrong one: the object's
// own type is checked first, its numbers and lengths after that.
#pragma once

#include <cstddef>
#include <string>

#include "base/flight_recorder.h"
#include "providers/torch/record_function.h"

namespace leadline::torch {

class CollectiveText {
 public:
  // Whether an operator that has no schema is the one that wraps collectives.
  static bool is_wrapper(const char* operator_name) noexcept;
  // Valid as long as this object; nullptr when torch says nothing. `where`: the same for the flight recorder, valid
  // until the wrapper has ended.
  const char* describe(const Symbols& symbols, FlightRecorder::Where* where = nullptr) noexcept;

 private:
  std::string text_;
};

}  // namespace leadline::torch
