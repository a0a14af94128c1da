// How the time of a fusion is shared by the operations inside it: an estimate from shapes, since nothing measures it.
//
//   weight = additions + (bytes read from outside + bytes written outside) / 2
//
// On one core of x86-64 an addition of 32-bit numbers takes about 0.05 ns, a byte 0.02 ns in its second cache and 0.06
// to 0.1 ns beyond. What is dearer counts as so many additions (opcodes.h), a number of 64 bits as two, a product of
// matrices as two for each term. The sum and not the greater of the two, as in a roofline, since a loop over small
// arrays is bound by both in turns. Counted like this, as HloCostAnalysis of XLA counts operations and bytes:
//
// - A value that another operation of the fusion uses stays in a register: no bytes. What comes in is shared by those
//   that use it first; what goes out is of the operation that makes it, of each one where there are several results.
// - An element is computed when it is asked for. A reduction asks for all of its operand and runs its function once for
//   each element; a window once for each element of the result and of the window; a slice asks for what it takes, also
//   of what was computed before it; an update in place reads and writes what is new only.
// - Operations that nothing is known of hand their weight on to who uses them, or, at the end, to what they are of.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "xla/hlo.h"

namespace leadline::xla {

// Which operations get a weight: those with a stack, or, in programs without any, those with a name.
enum class Known : uint8_t { kByStack, kByName };

// Whether an operation is one of those: free ones never are.
bool is_known(const Instruction& instruction, Known known) noexcept;

// Rows of the operations that the instruction in `row` calls, however deep, with their weights, in the order of rows.
// A weight may be 0 and is never negative.
std::vector<std::pair<uint32_t, double>> weights(const Module& module, uint32_t row, Known known);

}  // namespace leadline::xla
