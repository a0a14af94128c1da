#include "base/library.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>

using namespace leadline;

TEST_CASE("The C library is found among the loaded ones, with symbols and a range that holds them") {
  const auto library = Library::find_loaded("libc.so");
  REQUIRE(library.has_value());
  auto* function = library->symbol<pid_t()>("getppid");
  REQUIRE((function != nullptr));
  CHECK(function() == getppid());
  CHECK((library->symbol<void()>("no_such_symbol_in_libc") == nullptr));
  const auto libraries = loaded_libraries();
  const auto holds = [&](const LoadedLibrary& candidate) {
    const auto at = reinterpret_cast<std::uintptr_t>(function);
    return candidate.path == library->path() && candidate.begin <= at && at < candidate.end;
  };
  CHECK(std::count_if(libraries.begin(), libraries.end(), holds) == 1);
}

TEST_CASE("A library that is not loaded is not found") {
  CHECK_FALSE(Library::find_loaded("libnothing_of_this_name.so").has_value());
  CHECK_FALSE(Library::find_loaded("").has_value());
}

TEST_CASE("Opening tries the candidates in order and says what failed") {
  std::string error;
  const std::vector<std::string> candidates{"libnothing_of_this_name.so.1", "libc.so.6"};
  const auto library = Library::open(candidates, &error);
  REQUIRE(library.has_value());
  CHECK(library->path().find("libc") != std::string::npos);
  CHECK(error.empty());
  CHECK_FALSE(Library::open(std::span(candidates).first(1), &error).has_value());
  CHECK(error.find("libnothing_of_this_name.so.1") != std::string::npos);
}

TEST_CASE("Symbols of the whole process") { CHECK((Library::process().symbol<pid_t()>("getpid") != nullptr)); }
