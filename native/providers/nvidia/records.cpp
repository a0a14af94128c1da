#include "providers/nvidia/records.h"

#include <array>
#include <cstdio>
#include <string>

namespace leadline::nvidia {
namespace {

template <class R>
const R& as(const cupti::Record& record) noexcept {
  return reinterpret_cast<const R&>(record);
}

// Kineto's words for the same numbers.
constexpr std::array<const char*, 11> kDirections{"Unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA",
                                                  "AtoD",    "DtoA", "DtoD", "HtoH", "PtoP"};
constexpr std::array<const char*, 8> kMemories{"Unknown", "Pageable", "Pinned",        "Device",
                                               "Array",   "Managed",  "Device Static", "Managed Static"};

// All names of copies, made once: a copy's name must not be built while records are folded.
struct CopyNames {
  std::array<std::string, kDirections.size() * kMemories.size() * kMemories.size()> names;
  std::array<std::string, kMemories.size()> sets;
  CopyNames() {
    std::size_t at = 0;
    for (const char* direction : kDirections) {
      for (const char* from : kMemories) {
        for (const char* to : kMemories) {
          names[at++] = std::string("Memcpy ") + direction + " (" + from + " -> " + to + ")";
        }
      }
    }
    for (std::size_t i = 0; i < kMemories.size(); ++i) sets[i] = std::string("Memset (") + kMemories[i] + ")";
  }
};

const CopyNames& names() {
  static const CopyNames made;
  return made;
}

void times(Work* work, std::uint64_t start, std::uint64_t end, std::int64_t offset_ns) noexcept {
  work->start_ns = static_cast<std::int64_t>(start) + offset_ns;
  work->end_ns = static_cast<std::int64_t>(end) + offset_ns;
}

}  // namespace

std::optional<Work> decode(const cupti::Record& record, std::uint32_t version, std::int64_t offset_ns) noexcept {
  Work work;
  std::uint64_t start = 0;
  std::uint64_t end = 0;
  switch (record.kind) {
    case cupti::Kind::kKernel:
    case cupti::Kind::kConcurrentKernel: {
      const auto& r = as<cupti::KernelRecord>(record);
      work.kind = WorkKind::kKernel;
      work.correlation = r.correlation_id;
      start = r.start;
      end = r.end;
      work.device = static_cast<std::int32_t>(r.device_id);
      work.stream = r.stream_id;
      work.context = r.context_id;
      work.graph_node = r.graph_node_id;
      work.name = r.name;
      work.blocks = std::int64_t{r.grid[0]} * r.grid[1] * r.grid[2];
      work.block_threads = r.block[0] * r.block[1] * r.block[2];
      work.registers = r.registers_per_thread;
      work.static_shared = r.static_shared;
      work.dynamic_shared = r.dynamic_shared;
      work.shared_executed = static_cast<std::int32_t>(r.shared_executed);
      break;
    }
    case cupti::Kind::kMemcpy: {
      const auto& r = as<cupti::MemcpyRecord>(record);
      work.kind = WorkKind::kCopy;
      work.correlation = r.correlation_id;
      start = r.start;
      end = r.end;
      work.device = static_cast<std::int32_t>(r.device_id);
      work.stream = r.stream_id;
      work.context = r.context_id;
      work.graph_node = r.graph_node_id;
      work.bytes = static_cast<std::int64_t>(r.bytes);
      work.copy_kind = r.copy_kind;
      work.source_kind = r.source_kind;
      work.destination_kind = r.destination_kind;
      break;
    }
    case cupti::Kind::kMemcpyPeer: {
      const auto& r = as<cupti::MemcpyPeerRecord>(record);
      work.kind = WorkKind::kCopy;
      work.correlation = r.correlation_id;
      start = r.start;
      end = r.end;
      work.device = static_cast<std::int32_t>(r.device_id);
      work.stream = r.stream_id;
      work.context = r.context_id;
      work.graph_node = r.graph_node_id;
      work.bytes = static_cast<std::int64_t>(r.bytes);
      work.copy_kind = r.copy_kind;
      work.source_kind = r.source_kind;
      work.destination_kind = r.destination_kind;
      break;
    }
    case cupti::Kind::kMemset: {
      const auto& r = as<cupti::MemsetRecord>(record);
      work.kind = WorkKind::kSet;
      work.correlation = r.correlation_id;
      start = r.start;
      end = r.end;
      work.device = static_cast<std::int32_t>(r.device_id);
      work.stream = r.stream_id;
      work.context = r.context_id;
      work.graph_node = r.graph_node_id;
      work.bytes = static_cast<std::int64_t>(r.bytes);
      work.destination_kind = static_cast<std::uint8_t>(r.memory_kind);
      break;
    }
    case cupti::Kind::kSynchronization: {
      const auto& r = as<cupti::SynchronizationRecord>(record);
      work.kind = WorkKind::kSynchronize;
      work.correlation = r.correlation_id;
      start = r.start;
      end = r.end;
      work.stream = r.stream_id == 0xffffffffu ? -1 : std::int64_t{r.stream_id};
      work.context = r.context_id;
      work.detail = static_cast<std::uint32_t>(r.type);
      break;
    }
    case cupti::Kind::kOverhead: {
      const auto& r = as<cupti::OverheadRecord>(record);
      work.kind = WorkKind::kOverhead;
      work.correlation = version >= cupti::kVersion12_4 ? r.correlation_id : 0;
      start = r.start;
      end = r.end;
      work.detail = static_cast<std::uint32_t>(r.overhead);
      break;
    }
    case cupti::Kind::kGraphTrace: {
      const auto& r = as<cupti::GraphTraceRecord>(record);
      work.kind = WorkKind::kGraph;
      work.correlation = r.correlation_id;
      start = r.start;
      end = r.end;
      work.device = static_cast<std::int32_t>(r.device_id);
      work.stream = r.stream_id;
      work.context = r.context_id;
      break;
    }
    default:
      return std::nullopt;
  }
  // CUPTI writes zeros where it could not take the time; such a record would span decades on the host's clock.
  if (start == 0 || end < start) return std::nullopt;
  times(&work, start, end, offset_ns);
  return work;
}

const char* copy_direction(std::uint8_t copy_kind) noexcept {
  return kDirections[copy_kind < kDirections.size() ? copy_kind : 0];
}

const char* memory_kind_name(std::uint8_t kind) noexcept { return kMemories[kind < kMemories.size() ? kind : 0]; }

const char* copy_name(std::uint8_t copy_kind, std::uint8_t source, std::uint8_t destination) noexcept {
  const std::size_t d = copy_kind < kDirections.size() ? copy_kind : 0;
  const std::size_t from = source < kMemories.size() ? source : 0;
  const std::size_t to = destination < kMemories.size() ? destination : 0;
  return names().names[(d * kMemories.size() + from) * kMemories.size() + to].c_str();
}

const char* set_name(std::uint8_t kind) noexcept { return names().sets[kind < kMemories.size() ? kind : 0].c_str(); }

const char* overhead_name(std::uint32_t kind) noexcept {
  switch (static_cast<cupti::OverheadKind>(kind)) {
    case cupti::OverheadKind::kDriverCompiler:
      return "Driver compiler";
    case cupti::OverheadKind::kBufferFlush:
      return "Activity buffer flush";
    case cupti::OverheadKind::kInstrumentation:
      return "Instrumentation";
    case cupti::OverheadKind::kResource:
      return "Profiling resources";
    case cupti::OverheadKind::kModuleLoading:
      return "Runtime triggered module loading";
    case cupti::OverheadKind::kLazyFunctionLoading:
      return "Lazy function loading";
    case cupti::OverheadKind::kCommandBufferFull:
      return "Command buffer full";
    case cupti::OverheadKind::kBufferRequest:
      return "Activity buffer request";
    default:
      return "Overhead";
  }
}

}  // namespace leadline::nvidia
