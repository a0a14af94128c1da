// Values of arguments and results: where a call has them, and through the kernel what they point to.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "providers/accelerator/description.h"
#include "providers/accelerator/frame.h"
#include "providers/accelerator/in_flight.h"

namespace leadline::accelerator {

// As it stands in its register or on the stack.
std::uint64_t word(const Frame& frame, const Argument& argument) noexcept;
void replace(Frame& frame, const Argument& argument, const void* by) noexcept;
// Of a type, in a word whose upper part says nothing.
std::int64_t signed_value(Type type, std::uint64_t word) noexcept;

class Values {
 public:
  using Text = std::array<char, kNameBytes>;
  // Each is false where there is nothing to be read.
  bool integer(const Frame& frame, const Argument& argument, std::int64_t* out) noexcept;
  bool real(const Frame& frame, const Argument& argument, double* out) noexcept;
  bool text(const Frame& frame, const Argument& argument, Text* out) noexcept;
  // Addresses that led nowhere.
  std::uint64_t unreadable() const noexcept { return unreadable_.load(std::memory_order_relaxed); }

 private:
  bool value(const Frame& frame, const Argument& argument, std::uint64_t* out) noexcept;
  std::atomic<std::uint64_t> unreadable_{0};
};

}  // namespace leadline::accelerator
