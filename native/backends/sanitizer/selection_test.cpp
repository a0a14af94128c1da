#include "backends/sanitizer/selection.h"

#include <doctest/doctest.h>

#include <string>

using leadline::sanitizer::Pattern;
using leadline::sanitizer::Selection;
using leadline::sanitizer::Wanted;

TEST_CASE("Patterns are found anywhere in a name, and digits may be written as in Python") {
  std::string error;
  CHECK(Pattern("", &error).found_in("anything"));
  const Pattern pattern("^void gemm.*_\\d+|softmax$", &error);
  CHECK(error.empty());
  CHECK(pattern.found_in("void gemm<float>_128"));
  CHECK_FALSE(pattern.found_in("void gemm<float>_d"));
  CHECK(pattern.found_in("log_softmax"));
}

TEST_CASE("A pattern that would mean something else, or nothing, is refused with its text") {
  for (const char* const text : {"(?i)gemm", "a.*?b", "(", "gemm(", "\\Agemm"}) {
    std::string error;
    const Pattern pattern(text, &error);
    CHECK(error.find(text) != std::string::npos);
  }
}

TEST_CASE("One of so many is one of those that the range and the kernel have chosen") {
  std::string error;
  Wanted wanted;
  wanted.first = 10;
  wanted.every = 3;
  Selection selection(wanted, &error);
  std::string chosen;
  for (int i = 0; i < 20; ++i) {
    if (selection.launch(i, 0)) chosen += std::to_string(i) + " ";
  }
  CHECK(chosen == "10 13 16 19 ");
}
