// main() of every C++ unit test program.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

// GCC 12's sanitizers take a thread's block of a loaded library's variables for one with a header of glibc 2.19 when it
// lies 16 bytes behind the begin of a page, as a few do, and follow what stands before it: the search for leaks then
// dies, with all tests passed. Later glibc has no such header, and the blocks are found without it.
// https://github.com/google/sanitizers/issues/1322
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
extern "C" __attribute__((visibility("default"))) const char* __asan_default_options() {
  return "intercept_tls_get_addr=0";
}
extern "C" __attribute__((visibility("default"))) const char* __tsan_default_options() {
  return "intercept_tls_get_addr=0";
}
#endif
