// Replaces operator new of a test program by one that can be told to fail. Include it in one source only.
#pragma once

#include <cstdlib>
#include <new>

namespace leadline::testing {

inline thread_local bool t_allocations_fail = false;

// While one exists, every allocation of this thread throws std::bad_alloc.
struct NoMemory {
  NoMemory() noexcept { t_allocations_fail = true; }
  ~NoMemory() { t_allocations_fail = false; }
  NoMemory(const NoMemory&) = delete;
  NoMemory& operator=(const NoMemory&) = delete;
};

}  // namespace leadline::testing

[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return leadline::testing::t_allocations_fail ? nullptr : std::malloc(size == 0 ? 1 : size);
}
[[gnu::noinline]] void* operator new(std::size_t size) {
  void* memory = operator new(size, std::nothrow);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  return operator new(size, std::nothrow);
}
[[gnu::noinline]] void* operator new[](std::size_t size) { return operator new(size); }
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
