// Scopes of work that a communication operator has begun and that goes on after it: torch opens them inside the
// operator (`gloo:send`) and ends them when the work has, within whatever the thread does then, or on another thread.
// A thread is inside such a scope no longer than in the operator, so there it ends; its own end is then not heard.
#pragma once

#include <cstddef>

namespace leadline::torch {

class WorkScopes {
 public:
  // A communication operator begins on this thread: where its scopes will begin.
  static size_t enter() noexcept;
  // It ends: so do the scopes that were begun since `entered` and are open.
  static void leave(size_t entered) noexcept;
  static void began(const void* token) noexcept;
  // False: it has been ended before.
  static bool ended(const void* token) noexcept;
};

}  // namespace leadline::torch
