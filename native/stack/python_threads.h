// Threads of the interpreter by the numbers that the kernel gives them.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "base/safe_pages.h"

namespace leadline {

// The PyThreadState of a thread of this process; 0 where it has none. Reads memory that others may change.
uintptr_t python_state_of(SafePages& memory, pid_t tid) noexcept;

}  // namespace leadline
