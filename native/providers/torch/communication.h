// Operators that talk to other processes: which they are, and how long their thread waited inside.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "providers/torch/in_flight.h"
#include "providers/torch/launch_place.h"
#include "providers/torch/record_function.h"

namespace leadline::torch {

// What a frame says that is communication; readers split a thread's time by it.
inline constexpr char kCommunication[] = "{\"role\": \"communication\"}";

// Of the libraries c10d, c10d_functional and _c10d_functional.
inline bool communicates(const char* operator_name) noexcept {
  const char* name = operator_name + (operator_name[0] == '_' ? 1 : 0);
  return name[0] == 'c' && name[1] == '1' && name[2] == '0' && name[3] == 'd';
}

// While such an operator runs: work that it hands to other threads finds its place. When it ends, what its thread did
// not run (it slept, or stood in line for a core) is booked as `wait_time` at the operator. What operators of the same
// kind inside it waited is theirs.
class Communication final : public ObserverContext {
 public:
  // nullptr for want of memory. Not `launching`: a mere wrapper, at which no work shall hang. `flight`: its number in
  // the flight recorder.
  static std::unique_ptr<ObserverContext> open(const Symbols& symbols, bool launching, uint64_t flight = 0) noexcept;

  Communication(const Symbols* symbols, uint64_t flight) noexcept;
  ~Communication() override = default;
  void close() noexcept;

 private:
  std::optional<LaunchPlace> launch_;
  InFlight flight_;
  uint64_t thread_;
  size_t scopes_;
  int64_t before_ns_;  // waited inside the operator around this one, until now
  int64_t wall_ns_;
  int64_t cpu_ns_;
};

}  // namespace leadline::torch
