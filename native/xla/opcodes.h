// What the name of an operation tells of it.
#pragma once

#include <string_view>

namespace leadline::xla {

// Parameters, constants, tuples and the like: they take no time of their own.
bool is_free(std::string_view opcode) noexcept;
// Elements only change their places or their type: what the compiler puts in for its own sake.
bool only_moves(std::string_view opcode) noexcept;
// Whether a primitive of JAX is one that such an instruction does. `target`: of a custom call.
bool does(std::string_view opcode, std::string_view target, std::string_view primitive) noexcept;
// Operations that run others, which are seen by themselves: while, conditional, call.
bool is_control_flow(std::string_view opcode) noexcept;
// Additions of 32-bit numbers that take as long as one element of a result; 0 where elements only change their places.
// `whole_numbers`: of integers.
double additions(std::string_view opcode, bool whole_numbers) noexcept;

}  // namespace leadline::xla
