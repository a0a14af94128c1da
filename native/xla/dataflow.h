// Which operations of a program wait for the result of which, of those that are seen running.
#pragma once

#include <cstdint>
#include <vector>

#include "xla/hlo.h"

namespace leadline::xla {

struct Dataflow {
  std::vector<uint32_t> operations;  // rows of the module, computation by computation, each in its own order
  std::vector<uint32_t> edges;       // places in `operations`: who makes something, who needs it, and so on
};

// Names for what is there already (tuples and their parts, bitcasts) are looked through; what a computation is handed
// comes from nobody. A part of a tuple that was made in the same computation stands for all of it. Of a program with
// more than `most` edges none.
Dataflow dataflow(const Module& module, size_t most = 200'000);

// What each computation that runs by itself executes, as rows of the module in the order of its schedule, the entry
// first. What is begun to be waited for later stands where it begins, and as what is begun.
std::vector<std::vector<uint32_t>> schedules(const Module& module);

}  // namespace leadline::xla
