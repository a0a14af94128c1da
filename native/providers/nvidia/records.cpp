#include "providers/nvidia/records.h"

namespace leadline::nvidia {
namespace {

using gpu::Work;
using gpu::WorkKind;

static_assert(static_cast<int>(cupti::CopyKind::kPtoP) == static_cast<int>(gpu::Direction::kPtoP));
static_assert(static_cast<int>(cupti::CopyKind::kDtoH) == static_cast<int>(gpu::Direction::kDtoH));
static_assert(static_cast<int>(cupti::MemoryKind::kManagedStatic) == static_cast<int>(gpu::Memory::kManagedStatic));
static_assert(static_cast<int>(cupti::MemoryKind::kPinned) == static_cast<int>(gpu::Memory::kPinned));

// The vendor's numbers are ours; one that is newer than this file is unknown.
gpu::Direction direction(std::uint8_t kind) noexcept {
  return kind < gpu::kDirections ? static_cast<gpu::Direction>(kind) : gpu::Direction::kUnknown;
}
gpu::Memory memory(std::uint16_t kind) noexcept {
  constexpr auto kKinds = static_cast<std::uint16_t>(gpu::Memory::kManagedStatic) + 1;
  return kind < kKinds ? static_cast<gpu::Memory>(kind) : gpu::Memory::kUnknown;
}

const char* overhead_name(cupti::OverheadKind kind) noexcept {
  switch (kind) {
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

// What records say under the same name; which of it a record has is decided by its type. `more(record, work)` adds what
// only this kind says.
template <class Record, class More>
Work decode_as(WorkKind kind, const cupti::Record& record, std::int64_t offset_ns, const More& more) noexcept {
  const auto& r = reinterpret_cast<const Record&>(record);
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
    work.direction = direction(r.copy_kind);
    work.source = memory(r.source_kind);
    work.destination = memory(r.destination_kind);
  }
  more(r, work);
  return work;
}

template <class Record>
Work decode_as(WorkKind kind, const cupti::Record& record, std::int64_t offset_ns) noexcept {
  return decode_as<Record>(kind, record, offset_ns, [](const Record&, Work&) {});
}

}  // namespace

Work decode(const cupti::Record& record, std::uint32_t version, std::int64_t offset_ns) noexcept {
  switch (record.kind) {
    case cupti::Kind::kKernel:
    case cupti::Kind::kConcurrentKernel:
      return decode_as<cupti::KernelRecord>(WorkKind::kKernel, record, offset_ns,
                                            [](const cupti::KernelRecord& r, Work& work) {
                                              work.name = r.name;
                                              work.blocks = std::int64_t{r.grid[0]} * r.grid[1] * r.grid[2];
                                              work.block_threads = r.block[0] * r.block[1] * r.block[2];
                                              work.registers = r.registers_per_thread;
                                              work.static_shared = r.static_shared;
                                              work.dynamic_shared = r.dynamic_shared;
                                              work.shared_executed = static_cast<std::int32_t>(r.shared_executed);
                                            });
    case cupti::Kind::kMemcpy:
      return decode_as<cupti::MemcpyRecord>(WorkKind::kCopy, record, offset_ns);
    case cupti::Kind::kMemcpyPeer:
      return decode_as<cupti::MemcpyPeerRecord>(WorkKind::kCopy, record, offset_ns);
    case cupti::Kind::kMemset:
      return decode_as<cupti::MemsetRecord>(
          WorkKind::kSet, record, offset_ns,
          [](const cupti::MemsetRecord& r, Work& work) { work.destination = memory(r.memory_kind); });
    case cupti::Kind::kSynchronization:
      return decode_as<cupti::SynchronizationRecord>(WorkKind::kWait, record, offset_ns,
                                                     [](const cupti::SynchronizationRecord& r, Work& work) {
                                                       work.holds_thread = r.type != cupti::SyncType::kStreamWaitEvent;
                                                     });
    case cupti::Kind::kOverhead:
      return decode_as<cupti::OverheadRecord>(WorkKind::kOverhead, record, offset_ns,
                                              [&](const cupti::OverheadRecord& r, Work& work) {
                                                if (version < cupti::kVersion12_4)
                                                  work.correlation = 0;  // the field lies past such a record's end
                                                work.name = overhead_name(r.overhead);
                                              });
    case cupti::Kind::kGraphTrace:
      return decode_as<cupti::GraphTraceRecord>(WorkKind::kGraph, record, offset_ns);
    default: {
      Work none;
      none.kind = WorkKind::kNone;
      return none;
    }
  }
}

}  // namespace leadline::nvidia
