// Where the threads are, for who looks into the process from outside (`leadline dump`): operators, modules and regions
// that are open on each, as text in a piece of memory that is found by its name in /proc/PID/maps.
//
// It is written by the thread that writes segments, so it needs neither the interpreter nor a thread that answers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace leadline {

class Whereabouts {
 public:
  Whereabouts() = default;
  Whereabouts(const Whereabouts&) = delete;
  Whereabouts& operator=(const Whereabouts&) = delete;
  ~Whereabouts() { forget(); }

  // As it is now. One thread at a time. Raises nothing: without memory nobody hears of it.
  void publish() noexcept;
  // Measuring is over.
  void forget() noexcept;
  // In the child of a fork, which does not have the memory.
  void after_fork() noexcept { head_ = nullptr; }

 private:
  struct Head;
  bool begin() noexcept;

  Head* head_ = nullptr;
};

}  // namespace leadline
