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

// What every record says under the same name; which of them a record has is decided by its type.
template <class R>
Work common(WorkKind kind, const R& r, std::int64_t offset_ns) noexcept {
  Work work;
  work.kind = kind;
  work.correlation = r.correlation_id;
  // CUPTI writes zeros where it could not take the time; such a record would span decades on the host's clock.
  if (r.start == 0 || r.end < r.start) {
    work.kind = WorkKind::kNone;
    return work;
  }
  work.start_ns = static_cast<std::int64_t>(r.start) + offset_ns;
  work.end_ns = static_cast<std::int64_t>(r.end) + offset_ns;
  if constexpr (requires { r.device_id; }) work.device = static_cast<std::int32_t>(r.device_id);
  if constexpr (requires { r.context_id; }) work.context = r.context_id;
  constexpr std::uint32_t kEveryStream = 0xffffffffu;
  if constexpr (requires { r.stream_id; }) work.stream = r.stream_id == kEveryStream ? -1 : std::int64_t{r.stream_id};
  if constexpr (requires { r.graph_node_id; }) work.graph_node = r.graph_node_id;
  if constexpr (requires { r.graph_id; }) work.graph = r.graph_id;
  if constexpr (requires { r.bytes; }) work.bytes = static_cast<std::int64_t>(r.bytes);
  if constexpr (requires { r.copy_kind; }) {
    work.copy_kind = r.copy_kind;
    work.source_kind = r.source_kind;
    work.destination_kind = r.destination_kind;
  }
  return work;
}

}  // namespace

Work decode(const cupti::Record& record, std::uint32_t version, std::int64_t offset_ns) noexcept {
  switch (record.kind) {
    case cupti::Kind::kKernel:
    case cupti::Kind::kConcurrentKernel: {
      const auto& r = as<cupti::KernelRecord>(record);
      Work work = common(WorkKind::kKernel, r, offset_ns);
      work.name = r.name;
      work.blocks = std::int64_t{r.grid[0]} * r.grid[1] * r.grid[2];
      work.block_threads = r.block[0] * r.block[1] * r.block[2];
      work.registers = r.registers_per_thread;
      work.static_shared = r.static_shared;
      work.dynamic_shared = r.dynamic_shared;
      work.shared_executed = static_cast<std::int32_t>(r.shared_executed);
      return work;
    }
    case cupti::Kind::kMemcpy:
      return common(WorkKind::kCopy, as<cupti::MemcpyRecord>(record), offset_ns);
    case cupti::Kind::kMemcpyPeer:
      return common(WorkKind::kCopy, as<cupti::MemcpyPeerRecord>(record), offset_ns);
    case cupti::Kind::kMemset: {
      const auto& r = as<cupti::MemsetRecord>(record);
      Work work = common(WorkKind::kSet, r, offset_ns);
      work.destination_kind = static_cast<std::uint8_t>(r.memory_kind);
      return work;
    }
    case cupti::Kind::kSynchronization: {
      const auto& r = as<cupti::SynchronizationRecord>(record);
      Work work = common(WorkKind::kSynchronize, r, offset_ns);
      work.detail = static_cast<std::uint32_t>(r.type);
      return work;
    }
    case cupti::Kind::kOverhead: {
      const auto& r = as<cupti::OverheadRecord>(record);
      Work work = common(WorkKind::kOverhead, r, offset_ns);
      if (version < cupti::kVersion12_4) work.correlation = 0;
      work.detail = static_cast<std::uint32_t>(r.overhead);
      return work;
    }
    case cupti::Kind::kGraphTrace:
      return common(WorkKind::kGraph, as<cupti::GraphTraceRecord>(record), offset_ns);
    default: {
      Work none;
      none.kind = WorkKind::kNone;
      return none;
    }
  }
}

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
