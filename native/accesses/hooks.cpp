// The functions that a compiler calls at each access of code that it compiles with -fsanitize=thread, and those that
// stand for masked instructions and for memcpy; see masked.h. No sanitizer is linked: these are all that its code asks
// for.
//
// The declarations follow what GCC and clang emit (libsanitizer's tsan_interface.h and tsan_interface_atomic.h name
// them). NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
#include <cstdint>
#include <cstring>

#include "accesses/counts.h"

#define LL_HOOK extern "C" __attribute__((visibility("default")))

using leadline::accesses::g_launch;
using leadline::accesses::SpanResult;

namespace {

[[gnu::always_inline]] inline void take(const volatile void* address, size_t bytes, bool write) noexcept {
  g_launch.take(address, bytes, write);
}

}  // namespace

LL_HOOK int ll_accesses_begin(const uint64_t* spans, size_t count) { return g_launch.begin(spans, count) ? 1 : 0; }
LL_HOOK uint64_t ll_accesses_end(SpanResult* results, const uint64_t* page_sizes, size_t sizes, uint64_t* page_counts) {
  return g_launch.end(results, page_sizes, sizes, page_counts);
}

// Lanes of a masked load or store: `bytes` each, one after the other.
LL_HOOK void ll_accesses_masked(const volatile void* address, uint64_t lanes, unsigned bytes, int write) {
  for (; lanes != 0; lanes &= lanes - 1) {
    const auto lane = static_cast<unsigned>(__builtin_ctzll(lanes));
    take(static_cast<const volatile char*>(address) + size_t{lane} * bytes, bytes, write != 0);
  }
}
LL_HOOK void ll_accesses_one(const volatile void* address, unsigned bytes) { take(address, bytes, false); }

LL_HOOK void __tsan_init() {}
LL_HOOK void __tsan_func_entry(void* /*caller*/) {}
LL_HOOK void __tsan_func_exit() {}
LL_HOOK void __tsan_vptr_update(void** /*place*/, void* /*value*/) {}
LL_HOOK void __tsan_vptr_read(void** /*place*/) {}
LL_HOOK void __tsan_ignore_thread_begin() {}
LL_HOOK void __tsan_ignore_thread_end() {}

#define LL_PLAIN(BYTES)                                                                                             \
  LL_HOOK void __tsan_read##BYTES(void* address) { take(address, BYTES, false); }                                   \
  LL_HOOK void __tsan_write##BYTES(void* address) { take(address, BYTES, true); }                                   \
  LL_HOOK void __tsan_unaligned_read##BYTES(void* address) { take(address, BYTES, false); }                         \
  LL_HOOK void __tsan_unaligned_write##BYTES(void* address) { take(address, BYTES, true); }                         \
  LL_HOOK void __tsan_volatile_read##BYTES(void* address) { take(address, BYTES, false); }                          \
  LL_HOOK void __tsan_volatile_write##BYTES(void* address) { take(address, BYTES, true); }                          \
  LL_HOOK void __tsan_unaligned_volatile_read##BYTES(void* address) { take(address, BYTES, false); }                \
  LL_HOOK void __tsan_unaligned_volatile_write##BYTES(void* address) { take(address, BYTES, true); }                \
  LL_HOOK void __tsan_read_write##BYTES(void* address) { take(address, BYTES, false), take(address, BYTES, true); } \
  LL_HOOK void __tsan_unaligned_read_write##BYTES(void* address) {                                                  \
    take(address, BYTES, false), take(address, BYTES, true);                                                        \
  }
LL_PLAIN(1)
LL_PLAIN(2)
LL_PLAIN(4)
LL_PLAIN(8)
LL_PLAIN(16)
LL_HOOK void __tsan_read_range(void* address, size_t bytes) { take(address, bytes, false); }
LL_HOOK void __tsan_write_range(void* address, size_t bytes) { take(address, bytes, true); }

#define LL_CHANGE(BITS, NAME)                                                                              \
  LL_HOOK uint##BITS##_t __tsan_atomic##BITS##_##NAME(volatile uint##BITS##_t* a, uint##BITS##_t v, int) { \
    take(a, sizeof v, false), take(a, sizeof v, true);                                                     \
    return __atomic_##NAME(a, v, __ATOMIC_SEQ_CST);                                                        \
  }
#define LL_ATOMIC(BITS)                                                                                           \
  LL_HOOK uint##BITS##_t __tsan_atomic##BITS##_load(const volatile uint##BITS##_t* a, int) {                      \
    take(a, sizeof *a, false);                                                                                    \
    return __atomic_load_n(a, __ATOMIC_SEQ_CST);                                                                  \
  }                                                                                                               \
  LL_HOOK void __tsan_atomic##BITS##_store(volatile uint##BITS##_t* a, uint##BITS##_t v, int) {                   \
    take(a, sizeof v, true);                                                                                      \
    __atomic_store_n(a, v, __ATOMIC_SEQ_CST);                                                                     \
  }                                                                                                               \
  LL_HOOK uint##BITS##_t __tsan_atomic##BITS##_exchange(volatile uint##BITS##_t* a, uint##BITS##_t v, int) {      \
    take(a, sizeof v, false), take(a, sizeof v, true);                                                            \
    return __atomic_exchange_n(a, v, __ATOMIC_SEQ_CST);                                                           \
  }                                                                                                               \
  LL_CHANGE(BITS, fetch_add)                                                                                      \
  LL_CHANGE(BITS, fetch_sub)                                                                                      \
  LL_CHANGE(BITS, fetch_and)                                                                                      \
  LL_CHANGE(BITS, fetch_or)                                                                                       \
  LL_CHANGE(BITS, fetch_xor)                                                                                      \
  LL_CHANGE(BITS, fetch_nand)                                                                                     \
  LL_HOOK int __tsan_atomic##BITS##_compare_exchange_strong(volatile uint##BITS##_t* a, uint##BITS##_t* expected, \
                                                            uint##BITS##_t v, int, int) {                         \
    take(a, sizeof v, false), take(a, sizeof v, true);                                                            \
    return __atomic_compare_exchange_n(a, expected, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                \
  }                                                                                                               \
  LL_HOOK int __tsan_atomic##BITS##_compare_exchange_weak(volatile uint##BITS##_t* a, uint##BITS##_t* expected,   \
                                                          uint##BITS##_t v, int, int) {                           \
    take(a, sizeof v, false), take(a, sizeof v, true);                                                            \
    return __atomic_compare_exchange_n(a, expected, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                \
  }                                                                                                               \
  LL_HOOK uint##BITS##_t __tsan_atomic##BITS##_compare_exchange_val(                                              \
      volatile uint##BITS##_t* a, uint##BITS##_t expected, uint##BITS##_t v, int, int) {                          \
    take(a, sizeof v, false), take(a, sizeof v, true);                                                            \
    __atomic_compare_exchange_n(a, &expected, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                      \
    return expected;                                                                                              \
  }
LL_ATOMIC(8)
LL_ATOMIC(16)
LL_ATOMIC(32)
LL_ATOMIC(64)
LL_HOOK void __tsan_atomic_thread_fence(int) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
LL_HOOK void __tsan_atomic_signal_fence(int) {}

// Code is linked with --wrap for these.
LL_HOOK void* __wrap_memcpy(void* to, const void* from, size_t bytes) {
  take(from, bytes, false);
  take(to, bytes, true);
  return std::memcpy(to, from, bytes);
}
LL_HOOK void* __wrap_memmove(void* to, const void* from, size_t bytes) {
  take(from, bytes, false);
  take(to, bytes, true);
  return std::memmove(to, from, bytes);
}
LL_HOOK void* __wrap_memset(void* to, int value, size_t bytes) {
  take(to, bytes, true);
  return std::memset(to, value, bytes);
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)
