// Functions of the program that a library calls when work has ended. Each call is handed a thunk in its place, which
// knows the work and then jumps to the function with everything as the library passed it.
//
// Thunks are the process's own and stay: a library may call long after measuring has stopped.
#pragma once

#include <cstdint>
#include <optional>

#include "providers/accelerator/in_flight.h"

namespace leadline::accelerator {

class Callbacks {
 public:
  static constexpr std::uint32_t kThunks = 1024;

  // A thunk for `original`; nullptr where all are out.
  static void* arm(void* original, const Request& request, std::uint32_t session) noexcept;
  // The launch failed, and nobody will call.
  static void disarm(const void* thunk) noexcept;

  struct Called {
    void* original = nullptr;
    std::optional<Request> request;  // nullopt: called a second time
    std::uint32_t session = 0;
  };
  static Called called(std::uint32_t number) noexcept;
};

}  // namespace leadline::accelerator
