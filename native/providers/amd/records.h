// The SDK's records as work of the fold.
#pragma once

#include "gpu/work.h"
#include "providers/amd/agents.h"
#include "providers/amd/graphs.h"
#include "providers/amd/kernel_symbols.h"
#include "providers/amd/rocprofiler_abi.h"

namespace leadline::amd {

struct Decoder {
  const Agents& agents;
  const KernelSymbols& kernels;
  const Graphs& graphs;
  std::int64_t offset_ns = 0;  // from the SDK's clock to the monitor's

  gpu::Work dispatch(const sdk::DispatchRecord& record) const noexcept;
  gpu::Work copy(const sdk::CopyRecord& record) const noexcept;
};

}  // namespace leadline::amd
