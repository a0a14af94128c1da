// Records of the SDK, and of roctracer, as work of the fold.
#pragma once

#include <optional>
#include <string_view>

#include "gpu/scratch_memory.h"
#include "gpu/work.h"
#include "providers/amd/agents.h"
#include "providers/amd/call_streams.h"
#include "providers/amd/graphs.h"
#include "providers/amd/kernel_symbols.h"
#include "providers/amd/rocprofiler_abi.h"
#include "providers/amd/roctracer_abi.h"

namespace leadline::amd {

struct Decoder {
  const Agents& agents;
  const KernelSymbols& kernels;
  const Graphs& graphs;
  std::int64_t offset_ns = 0;  // from the library's clock to the monitor's

  gpu::Work dispatch(const sdk::DispatchRecord& record) const noexcept;
  gpu::Work copy(const sdk::CopyRecord& record) const noexcept;
  // Nullopt where it is of no use.
  std::optional<gpu::ScratchChange> scratch(const sdk::ScratchRecord& record) const noexcept;
  // `what`: the work in roctracer's words.
  gpu::Work traced(const tracer::Record& record, std::string_view what, const CallStreams& streams) const noexcept;
};

}  // namespace leadline::amd
