// Tensor memory of all threads: calls of c10's allocation functions are redirected while the provider is attached.
//
// torch's own reporting slot is per thread and belongs to torch.profiler, so it is left alone. Replacements live in
// this library for ever; after detach() they only call the original.
#pragma once

#include <string>

namespace leadline::torch {

class MemoryHooks {
 public:
  // False with a sentence in *why when nothing could be redirected.
  bool attach(std::string* why);
  void detach() noexcept;
  // Replacements only call the original (false) or emit as well; nothing while detached.
  void set_running(bool running) noexcept;
};

}  // namespace leadline::torch
