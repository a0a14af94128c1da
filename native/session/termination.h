// A last segment before a signal ends the process: SIGTERM ends every worker of a multiprocessing.Pool, and schedulers
// end jobs with it.
//
// Promises: the process still dies of the same signal, a few milliseconds later. Only a signal whose action is the
// default is taken, and a program that installs a handler of its own simply replaces ours. A forked child in which
// nobody listens dies at once.
#pragma once

#include "base/wake.h"

namespace leadline::termination {

// Signals are remembered and wake who waits for what is returned. One listener per process.
Wake* listen() noexcept;
// Nobody listens any more, in this process or in the child of a fork.
void forget() noexcept;
// The signal that wants to end the process, or 0.
int pending() noexcept;
// Die of `signal` with its default action.
void die(int signal) noexcept;

}  // namespace leadline::termination
