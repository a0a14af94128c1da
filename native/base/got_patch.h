// Redirects calls of a named function by replacing its entries in the global offset tables of loaded libraries.
//
// Only libraries loaded at the time of install() are changed; calls inside the defining library that do not go through
// a table are not seen. Works on ELF64 x86-64 and aarch64, with and without RELRO.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace leadline {

class GotPatch {
 public:
  GotPatch() = default;
  GotPatch(GotPatch&& other) noexcept;
  GotPatch& operator=(GotPatch&& other) noexcept;
  GotPatch(const GotPatch&) = delete;
  GotPatch& operator=(const GotPatch&) = delete;
  ~GotPatch();  // restores

  // Which entries of the name, where several libraries define it.
  struct Entries {
    const void* bound_to = nullptr;  // only those that hold this address; null: all
    bool unbound = true;             // also those that lazy binding has not filled in
  };

  // Points every entry for `symbol` at `replacement`, in each library for which `wanted(path)` holds (path is empty for
  // the program itself). An entry that could not be made writable is left alone and counted in failed().
  static GotPatch install(const char* symbol, void* replacement,
                          const std::function<bool(std::string_view path)>& wanted, const Entries& entries);
  static GotPatch install(const char* symbol, void* replacement,
                          const std::function<bool(std::string_view path)>& wanted) {
    return install(symbol, replacement, wanted, Entries());
  }

  // Puts the old entries back where they still hold the replacement and the library is still loaded.
  void restore() noexcept;

  // The function itself, for the replacement to call; nullptr when no entry was replaced.
  void* original() const noexcept { return original_; }
  std::size_t replaced() const noexcept { return slots_.size(); }
  std::size_t failed() const noexcept { return failed_; }
  // Entries that were left alone since another thread is loading their library right now.
  std::size_t loading() const noexcept { return loading_; }

 private:
  struct Slot {
    void** address;
    void* previous;
    std::uintptr_t library_base;
    bool read_only;  // RELRO: the page must be made writable for a moment
  };
  std::vector<Slot> slots_;
  void* replacement_ = nullptr;
  void* original_ = nullptr;
  std::size_t failed_ = 0;
  std::size_t loading_ = 0;
};

}  // namespace leadline
