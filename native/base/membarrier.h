// A barrier that who waits brings for everybody: threads that store and then load need none of their own.
#pragma once

namespace leadline {

// Once per process, and again in the child of a fork. False where the kernel has none, or a sandbox forbids it.
bool register_membarrier() noexcept;

// Every thread of this process has passed a full memory barrier when this returns; after register_membarrier().
void membarrier() noexcept;

}  // namespace leadline
