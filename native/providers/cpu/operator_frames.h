// Native frames between an operator and what called it, for the paths of operators.
#pragma once

#include <cstdint>

#include "stack/native_source.h"

namespace leadline::cpu {

// nullptr where this system cannot be unwound. `all`: with the interpreter's own frames; `interpreter`: an address in
// it.
const NativeSource* operator_frames(bool all, uintptr_t interpreter);

// In the child of a fork.
void operator_frames_after_fork() noexcept;

}  // namespace leadline::cpu
