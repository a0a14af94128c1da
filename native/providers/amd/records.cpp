#include "providers/amd/records.h"

#include <cstddef>

#include "providers/amd/correlation.h"

namespace leadline::amd {
namespace {

using gpu::Direction;
using gpu::Memory;
using gpu::Work;
using gpu::WorkKind;

// What both say under the same names; false where it has no time.
template <class Record>
bool common(const Record& record, std::int64_t offset_ns, Work* work) noexcept {
  const Correlation correlation = Correlation::unpack(record.correlation_external.value);
  work->correlation = correlation.call;
  if (correlation.stream != StreamNumbers::kUnknown) work->stream = correlation.stream;
  if (record.start == 0 || record.end < record.start ||
      record.correlation_external.value == Correlation::kNotMeasured) {
    work->kind = WorkKind::kNone;
    return false;
  }
  work->start_ns = static_cast<std::int64_t>(record.start) + offset_ns;
  work->end_ns = static_cast<std::int64_t>(record.end) + offset_ns;
  return true;
}

std::int64_t groups(std::uint32_t items, std::uint32_t group) noexcept {
  return group == 0 ? 0 : (std::int64_t{items} + group - 1) / group;
}

}  // namespace

Work Decoder::dispatch(const sdk::DispatchRecord& record) const noexcept {
  Work work;
  if (!common(record, offset_ns, &work)) return work;
  const sdk::DispatchInfo& info = record.info;
  work.device = agents.device(info.agent);
  if (work.stream < 0) work.stream = static_cast<std::int64_t>(info.queue & 0x7fffffff);
  work.blocks = groups(info.grid.x, info.workgroup.x) * groups(info.grid.y, info.workgroup.y) *
                groups(info.grid.z, info.workgroup.z);
  work.block_threads = static_cast<std::int32_t>(info.workgroup.x * info.workgroup.y * info.workgroup.z);
  work.scratch = static_cast<std::int32_t>(info.private_segment);
  work.queue = info.queue;
  work.dynamic_shared = static_cast<std::int32_t>(info.group_segment);
  if (const Kernel* kernel = kernels.find(info.kernel)) {
    work.name = kernel->name.c_str();
    work.registers = kernel->vgprs;
    work.accumulation_registers = kernel->agprs;
    work.scalar_registers = kernel->sgprs;
    work.static_shared = kernel->static_lds;
    work.dynamic_shared = work.dynamic_shared > kernel->static_lds ? work.dynamic_shared - kernel->static_lds : 0;
  }
  if (const std::uint32_t node = Correlation::unpack(record.correlation_external.value).node; node != 0) {
    if (const std::uint32_t graph = graphs.of_launch(work.correlation); graph != 0) {
      work.graph = graph;
      work.graph_node = Graphs::node(graph, node - 1);
    }
  }
  return work;
}

Work Decoder::copy(const sdk::CopyRecord& record) const noexcept {
  Work work;
  work.kind = WorkKind::kCopy;
  if (!common(record, offset_ns, &work)) return work;
  const std::int32_t from = agents.device(record.source_agent);
  const std::int32_t to = agents.device(record.destination_agent);
  work.device = to >= 0 ? to : from;
  work.bytes = static_cast<std::int64_t>(record.bytes);
  work.source = from >= 0 ? Memory::kDevice : Memory::kHost;
  work.destination = to >= 0 ? Memory::kDevice : Memory::kHost;
  if (const Correlation told = Correlation::unpack(record.correlation_external.value); told.node != 0) {
    if (work.source == Memory::kHost) work.source = told.source_memory();
    if (work.destination == Memory::kHost) work.destination = told.destination_memory();
  }
  switch (record.operation) {
    case sdk::CopyOperation::kHostToHost:
      work.direction = Direction::kHtoH;
      break;
    case sdk::CopyOperation::kHostToDevice:
      work.direction = Direction::kHtoD;
      work.device = to;
      break;
    case sdk::CopyOperation::kDeviceToHost:
      work.direction = Direction::kDtoH;
      work.device = from;
      break;
    case sdk::CopyOperation::kDeviceToDevice:
      work.direction = from != to && from >= 0 && to >= 0 ? Direction::kPtoP : Direction::kDtoD;
      if (work.direction == Direction::kPtoP) {
        work.peer = from;
        work.link = agents.link(from, to);
      }
      break;
    default:
      break;
  }
  return work;
}

std::optional<gpu::ScratchChange> Decoder::scratch(const sdk::ScratchRecord& record) const noexcept {
  using Kind = gpu::ScratchChange::Kind;
  if (record.size < offsetof(sdk::ScratchRecord, bytes) || record.start == 0 || record.end < record.start) return {};
  gpu::ScratchChange change;
  switch (record.operation) {
    case sdk::ScratchOperation::kAllocate:
      break;
    case sdk::ScratchOperation::kFree:
      change.kind = Kind::kGivenBack;
      break;
    case sdk::ScratchOperation::kReclaim:
      change.kind = Kind::kReclaimed;
      break;
    default:
      return {};
  }
  change.queue = record.queue;
  change.device = agents.device(record.agent);
  change.start_ns = static_cast<std::int64_t>(record.start) + offset_ns;
  change.end_ns = static_cast<std::int64_t>(record.end) + offset_ns;
  if (record.size >= sizeof record) change.bytes = static_cast<std::int64_t>(record.bytes);
  return change;
}

Work Decoder::traced(const tracer::Record& record, std::string_view what, const CallStreams& streams) const noexcept {
  Work work;
  if (record.domain != tracer::Domain::kHipWork || record.begin == 0 || record.end < record.begin) {
    work.kind = WorkKind::kNone;
    return work;
  }
  work.correlation = static_cast<std::uint32_t>(record.correlation);
  work.start_ns = static_cast<std::int64_t>(record.begin) + offset_ns;
  work.end_ns = static_cast<std::int64_t>(record.end) + offset_ns;
  work.device = agents.device(static_cast<std::uint64_t>(record.device));
  if (work.device < 0) work.device = record.device;
  const CallStreams::Call call = streams.of(work.correlation);
  work.stream =
      call.stream != StreamNumbers::kUnknown ? call.stream : static_cast<std::int64_t>(record.queue & 0x7fffffff);
  work.queue = record.queue;
  if (record.operation == tracer::Operation::kDispatch) {
    work.name = record.kernel;
    return work;
  }
  work.bytes = static_cast<std::int64_t>(record.bytes);
  if (record.operation != tracer::Operation::kCopy) {
    work.kind = WorkKind::kNone;
  } else if (what == "FillBuffer") {
    work.kind = WorkKind::kSet;
    work.destination = Memory::kDevice;
  } else {
    work.kind = WorkKind::kCopy;
    const bool from_host = what.find("HostTo") != std::string_view::npos;
    const bool to_host = what.find("ToHost") != std::string_view::npos;
    work.source = from_host ? Memory::kHost : Memory::kDevice;
    work.destination = to_host ? Memory::kHost : Memory::kDevice;
    if (call.memory != 0) {
      Correlation told;
      told.node = call.memory;
      if (from_host) work.source = told.source_memory();
      if (to_host) work.destination = told.destination_memory();
    }
    work.direction = from_host ? Direction::kHtoD : to_host ? Direction::kDtoH : Direction::kDtoD;
  }
  return work;
}

}  // namespace leadline::amd
