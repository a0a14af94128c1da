// An operator new for test programs that can be told to fail, to count, and to call back. List failing_allocator.cpp
// among the sources of the program.
#pragma once

#include <cstdint>
#include <utility>

namespace leadline::testing {

// What the calling thread's allocations do.
struct Allocations {
  std::uint64_t made = 0;  // so far, failed ones included
  bool fail = false;
  std::uint64_t fail_every = 0;  // every so many; 0: none
  std::uint64_t fail_at = 0;     // when `made` reaches this; 0: none
  std::uint64_t call_at = 0;     // the same for `call`, which may not allocate
  void (*call)() = nullptr;
  std::int64_t bytes = 0;       // what it has allocated less what it has freed
  std::int64_t most_bytes = 0;  // the largest that this was
};
extern constinit thread_local Allocations t_allocations;

// While one exists, every allocation of this thread throws std::bad_alloc.
struct NoMemory {
  NoMemory() noexcept { t_allocations.fail = true; }
  ~NoMemory() { t_allocations.fail = false; }
  NoMemory(const NoMemory&) = delete;
  NoMemory& operator=(const NoMemory&) = delete;
};

// While one exists, what this thread allocates is the test's own: there is memory, and it does not count.
class OwnMemory {
 public:
  OwnMemory() noexcept : before_(std::exchange(t_allocations, Allocations())) {}
  ~OwnMemory() { t_allocations = before_; }
  OwnMemory(const OwnMemory&) = delete;
  OwnMemory& operator=(const OwnMemory&) = delete;

 private:
  Allocations before_;
};

}  // namespace leadline::testing
