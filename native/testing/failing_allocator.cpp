#include "testing/failing_allocator.h"

#include <malloc.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace leadline::testing {

constinit thread_local Allocations t_allocations;

namespace {

void* allocate(std::size_t size, std::size_t alignment) noexcept {
  Allocations& here = t_allocations;
  ++here.made;
  if (here.made == here.call_at) here.call();
  if (here.fail || here.made == here.fail_at || (here.fail_every != 0 && here.made % here.fail_every == 0))
    return nullptr;
  void* const memory = alignment <= alignof(std::max_align_t)
                           ? std::malloc(std::max<std::size_t>(size, 1))
                           : std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  here.bytes += static_cast<std::int64_t>(malloc_usable_size(memory));
  here.most_bytes = std::max(here.most_bytes, here.bytes);
  return memory;
}

void release(void* memory) noexcept {
  t_allocations.bytes -= static_cast<std::int64_t>(malloc_usable_size(memory));
  std::free(memory);
}

void* or_throw(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

constexpr std::size_t kUsual = alignof(std::max_align_t);

}  // namespace
}  // namespace leadline::testing

using leadline::testing::allocate;
using leadline::testing::kUsual;
using leadline::testing::or_throw;
using leadline::testing::release;
using Size = std::size_t;
using Alignment = std::align_val_t;
using NoThrow = std::nothrow_t;

[[gnu::noinline]] void* operator new(Size size) { return or_throw(allocate(size, kUsual)); }
[[gnu::noinline]] void* operator new[](Size size) { return or_throw(allocate(size, kUsual)); }
[[gnu::noinline]] void* operator new(Size size, const NoThrow&) noexcept { return allocate(size, kUsual); }
[[gnu::noinline]] void* operator new[](Size size, const NoThrow&) noexcept { return allocate(size, kUsual); }
[[gnu::noinline]] void* operator new(Size size, Alignment to) { return or_throw(allocate(size, Size(to))); }
[[gnu::noinline]] void* operator new[](Size size, Alignment to) { return or_throw(allocate(size, Size(to))); }
[[gnu::noinline]] void* operator new(Size size, Alignment to, const NoThrow&) noexcept {
  return allocate(size, Size(to));
}
[[gnu::noinline]] void* operator new[](Size size, Alignment to, const NoThrow&) noexcept {
  return allocate(size, Size(to));
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { release(memory); }
[[gnu::noinline]] void operator delete[](void* memory) noexcept { release(memory); }
[[gnu::noinline]] void operator delete(void* memory, Size) noexcept { release(memory); }
[[gnu::noinline]] void operator delete[](void* memory, Size) noexcept { release(memory); }
[[gnu::noinline]] void operator delete(void* memory, const NoThrow&) noexcept { release(memory); }
[[gnu::noinline]] void operator delete[](void* memory, const NoThrow&) noexcept { release(memory); }
[[gnu::noinline]] void operator delete(void* memory, Alignment) noexcept { release(memory); }
[[gnu::noinline]] void operator delete[](void* memory, Alignment) noexcept { release(memory); }
[[gnu::noinline]] void operator delete(void* memory, Size, Alignment) noexcept { release(memory); }
[[gnu::noinline]] void operator delete[](void* memory, Size, Alignment) noexcept { release(memory); }
[[gnu::noinline]] void operator delete(void* memory, Alignment, const NoThrow&) noexcept { release(memory); }
[[gnu::noinline]] void operator delete[](void* memory, Alignment, const NoThrow&) noexcept { release(memory); }
