// Ranges of the roctx library of before rocprofiler-sdk (libroctx64.so), which the SDK does not see: torch for ROCm,
// and programs built for it, still use it.
#pragma once

namespace leadline::amd {

// Asks the library for its calls where the program has loaded it; does nothing where it is asked already. Of
// roctracer's tools it serves the last that asks.
void follow_older_roctx();
void leave_older_roctx();

}  // namespace leadline::amd
