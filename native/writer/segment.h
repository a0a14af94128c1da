// Writes a whole snapshot of the process as one file: a ZIP (stored) of TABLE.COLUMN.npy, replaced atomically.
//
// May run while other threads write to their trees, the ledger and the window. Grafts are resolved: what a thread
// measured under another thread's path hangs there in the file. Nothing is thrown; on failure the previous segment
// stays as it was.
#pragma once

#include <cstdint>
#include <string>

#include "base/device_table.h"
#include "base/losses.h"
#include "cct/memory_ledger.h"
#include "cct/trace_event.h"
#include "cct/tree_registry.h"

namespace leadline {

struct ProcessInfo {
  std::uint32_t pid = 0;
  std::uint32_t parent_pid = 0;
  std::int32_t rank = -1;
  std::int32_t local_rank = -1;
  std::string name;           // command line
  std::int64_t start_ns = 0;  // CLOCK_REALTIME
  std::int64_t end_ns = 0;
  bool complete = false;
};

// What a segment is made of. Those that may be nullptr are simply absent from the file.
struct SegmentSources {
  const TreeRegistry& trees;
  LossCounters& losses;
  const ProcessInfo& process;
  MemoryLedger* ledger = nullptr;
  const TraceEventSource* events = nullptr;
  const DeviceTable* devices = nullptr;
};

enum class WriteError : std::uint8_t {
  kNone = 0,
  kOpen,         // the file could not be created
  kWrite,        // disk full, quota, file size limit
  kRename,       // written, but could not take the place of the previous segment
  kOutOfMemory,  // no memory for the snapshot
};

struct WriteResult {
  WriteError error = WriteError::kNone;
  int system_errno = 0;     // what the system said, 0 where it was not asked
  std::uint64_t bytes = 0;  // size of the segment
  std::uint32_t nodes = 0;  // rows of `nodes`
  explicit operator bool() const noexcept { return error == WriteError::kNone; }
};

// One sentence: what failed, why, and what to do. Empty for success.
std::string describe(const WriteResult& result, const std::string& path);

// Writes `path` + ".tmp" and renames it to `path`. A failure counts the loss write_failed with its sentence.
WriteResult write_segment(const std::string& path, const SegmentSources& sources) noexcept;

}  // namespace leadline
