// Reads of memory that may not be there.
#include "base/safe_pages.h"

#include <doctest/doctest.h>
#include <sys/mman.h>

#include <cerrno>
#include <memory>

using namespace leadline;

TEST_CASE("what is there is read, what is not is an answer") {
  if (!SafePages::allowed()) return;  // sandboxes may forbid the call; whoever needs it says so
  const auto pages = std::make_unique<SafePages>();
  constexpr size_t kPage = SafePages::kPage;
  void* const two = mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(two != MAP_FAILED);
  auto* const bytes = static_cast<unsigned char*>(two);
  const auto begin = reinterpret_cast<uintptr_t>(bytes);
  for (size_t i = 0; i < 2 * kPage; ++i) bytes[i] = static_cast<unsigned char>(i * 7);
  uint64_t word = 0;
  REQUIRE(pages->read(begin + kPage - 3, &word));  // across the border
  CHECK(reinterpret_cast<unsigned char*>(&word)[3] == bytes[kPage]);
  bytes[0] = 99;
  unsigned char byte = 0;
  REQUIRE(pages->read(begin, &byte));
  CHECK(byte == 0);  // as it was when its page was read
  pages->forget();
  REQUIRE(pages->read(begin, &byte));
  CHECK(byte == 99);
  munmap(bytes + kPage, kPage);
  pages->forget();
  errno = 7;
  CHECK_FALSE(pages->read(begin + kPage - 3, &word));
  CHECK_FALSE(pages->read(0, &word));
  CHECK_FALSE(read_safely(begin + kPage, &word, sizeof word));
  CHECK(errno == 7);
  CHECK(pages->read(begin + kPage - 8, &word));
  munmap(bytes, kPage);
}
