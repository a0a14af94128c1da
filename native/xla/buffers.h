// What a compiled program holds in its temporary memory when that is fullest, from XLA's BufferAssignmentProto (field
// numbers as in xla/service/hlo.proto; where the buffers of the peak stand, as jaxlib 0.10 writes them).
//
// Of the allocations those count that are neither arguments, results, constants nor a thread's own. Releases that do
// not tell which buffers are alive at the peak, nor in which order they come and go, tell the largest ones only.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace leadline::xla {

struct Buffer {
  int64_t bytes = 0;
  int64_t instruction = -1;  // id of what makes it, -1 where only the name is told
  std::string_view name;     // of the bytes that were read
};

struct Temporaries {
  int64_t bytes = 0;            // of all such allocations together
  bool at_peak = false;         // false: the buffers are the largest, and may never be alive together
  std::vector<Buffer> buffers;  // the largest first
};

// Damaged bytes: what was read before the damage.
Temporaries temporaries(std::string_view assignment);

}  // namespace leadline::xla
