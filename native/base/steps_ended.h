// How many training steps have ended in this process: for sources of data that do less once steps repeat, or look more
// closely when they begin. Counted by the collector.
#pragma once

#include <atomic>
#include <cstdint>

namespace leadline {

inline std::atomic<uint64_t> g_steps_ended{0};

}  // namespace leadline
