// One activity record of any CUPTI version as one plain structure, on the host's clock.
#pragma once

#include <cstdint>

#include "providers/nvidia/cupti_abi.h"

namespace leadline::nvidia {

enum class WorkKind : std::uint8_t {
  kKernel = 0,
  kCopy = 1,
  kSet = 2,
  kSynchronize = 3,
  kOverhead = 4,
  kGraph = 5,
  kNone = 6,  // a record of a kind that Leadline does not use, or without times
};

struct Work {
  WorkKind kind = WorkKind::kKernel;
  std::uint32_t correlation = 0;
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::int32_t device = -1;
  std::int64_t stream = -1;
  std::uint32_t context = 0;
  std::uint64_t graph_node = 0;  // of a replayed graph, else 0
  std::uint32_t graph = 0;       // the executable graph that was replayed, else 0
  const char* name = nullptr;    // mangled kernel name; valid as long as CUPTI's buffer
  std::int64_t bytes = 0;
  std::uint8_t copy_kind = 0;
  std::uint8_t source_kind = 0;
  std::uint8_t destination_kind = 0;
  std::uint32_t detail = 0;  // SyncType or OverheadKind
  std::int64_t blocks = 0;
  std::int32_t block_threads = 0;
  std::int32_t registers = 0;
  std::int32_t static_shared = 0;
  std::int32_t dynamic_shared = 0;
  std::int32_t shared_executed = 0;
};

// `offset_ns` is added to the record's times.
Work decode(const cupti::Record& record, std::uint32_t cupti_version, std::int64_t offset_ns) noexcept;

// As torch.profiler names them, so that the two can be compared: "Memcpy HtoD (Pinned -> Device)", "Memset (Device)".
const char* copy_name(std::uint8_t copy_kind, std::uint8_t source, std::uint8_t destination) noexcept;
const char* set_name(std::uint8_t memory_kind) noexcept;
const char* overhead_name(std::uint32_t overhead_kind) noexcept;

}  // namespace leadline::nvidia
