// Rules of addresses that have been met, for all threads: looking one up again costs a few nanoseconds.
//
// Insert-only, without locks: an entry is claimed by its address and its rule follows. What is learned while libraries
// come and go may be void afterwards, so whoever watches them calls renew(), outside of signal handlers.
#pragma once

#include <atomic>
#include <cstdint>

#include "unwind/rule.h"

namespace leadline::unwind {

// For an address inside a function; computed at its first use. Signal-safe.
Rule rule_at(uintptr_t pc) noexcept;
// Forgets all rules where libraries have been loaded or unloaded, or where there is no room for more. Not in signal
// handlers. Throws nothing: without memory the old ones stay.
void renew() noexcept;
// How often they have been forgotten: what was found by them before is void.
uint64_t renewals() noexcept;
// Whether this process can be unwound at all: the C library finds modules for signal handlers (glibc 2.35), and the
// processor is one whose rules are known. Call it once before rule_at().
bool available() noexcept;
// Loads and unloads of libraries so far; who keeps what is true of them looks again when it has changed.
uint64_t library_changes() noexcept;
// Addresses known, for tests and reports.
uint64_t rules_known() noexcept;

}  // namespace leadline::unwind
