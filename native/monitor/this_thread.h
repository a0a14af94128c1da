// The calling thread's state, where it has one.
#pragma once

#include "monitor/thread_state.h"

namespace leadline {

// Read at every event: static TLS saves the call that a library loaded at run time would make for it.
extern constinit __attribute__((tls_model("initial-exec"))) thread_local ThreadState* t_state;

}  // namespace leadline
