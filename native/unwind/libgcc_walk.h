// The native frames of the calling thread by libgcc's unwinder: slower than rules (rule.h), for processors that have
// none. It may take locks, so a signal handler cannot use it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace leadline::unwind {

// As walk_between(), from the caller's frame on.
size_t walk_between_by_libgcc(uintptr_t above, uintptr_t stop, uintptr_t* out, size_t room, bool* whole) noexcept;

}  // namespace leadline::unwind
