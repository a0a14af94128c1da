// Shared libraries found at run time, so that nothing is linked against a vendor or a framework.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace leadline {

// A library mapped into this process.
struct LoadedLibrary {
  std::string path;          // as the loader knows it; empty for the program itself
  std::uintptr_t base = 0;   // load bias: address in memory less address in the file
  std::uintptr_t begin = 0;  // lowest and one past the highest mapped address
  std::uintptr_t end = 0;
};

// Every library of the process, in load order.
std::vector<LoadedLibrary> loaded_libraries();

// An open handle. Closing does not unload: a library that has handed out callbacks must stay.
class Library {
 public:
  // A library that the program has loaded already, the first whose file name begins with `name_prefix` (such as
  // "libtorch_cpu.so"); nullopt where there is none. Loads nothing.
  static std::optional<Library> find_loaded(std::string_view name_prefix);

  // The first of `candidates` (sonames or paths) that opens. Otherwise nullopt, and *error says in one sentence what
  // was tried and what the loader answered.
  static std::optional<Library> open(std::span<const std::string> candidates, std::string* error);

  // Whatever is visible to the whole process.
  static Library process();

  // Address of a symbol, or nullptr. `F` is a function type or an object type.
  template <class F>
  F* symbol(const char* name) const noexcept {
    return reinterpret_cast<F*>(address(name));
  }

  const std::string& path() const noexcept { return path_; }

 private:
  Library(void* handle, std::string path) : handle_(handle), path_(std::move(path)) {}
  void* address(const char* name) const noexcept;

  void* handle_;
  std::string path_;
};

}  // namespace leadline
