// Writes a whole snapshot of the process as one file: a ZIP (stored) of TABLE.COLUMN.npy, replaced atomically.
//
// May run while other threads write to their trees, the ledger and the window. Grafts are resolved: what a thread
// measured under another thread's path hangs there in the file. Nothing is thrown; on failure the previous segment
// stays as it was.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/device_table.h"
#include "base/losses.h"
#include "cct/compiled_operations.h"
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

// Where a thread is: inside this node of a thread's tree.
struct OpenPlace {
  std::uint64_t tid;
  ThreadIndex tree;
  NodeId node;
};

// What measuring has cost so far.
struct OwnCost {
  std::int64_t callbacks_ns = 0;
  std::int64_t flush_ns = 0;
  std::uint64_t events = 0;
  std::uint64_t held_bytes = 0;
};

// What a segment is made of. Those that may be nullptr are simply absent from the file.
struct SegmentSources {
  const TreeRegistry& trees;
  LossCounters& losses;
  const ProcessInfo& process;
  MemoryLedger* ledger = nullptr;
  const TraceEventSource* events = nullptr;
  const DeviceTable* devices = nullptr;
  std::span<const OpenPlace> open_places = {};
  const OwnCost* own_cost = nullptr;
  const CompiledOperations* compiled = nullptr;
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

// Writes one segment after the other of one process, by one thread at a time. Numbers of nodes, frames, strings and
// threads are the same in all of them, unless memory was short in between.
//
// The events of a trace window stand beside the segments of a process that runs, in `path` with the end ".events"
// instead of ".segment", and are written again only when they have changed: a closed window costs nothing more. They
// are put in place after the segment that has their nodes, and what is older names nodes of every newer segment, so a
// process may die between the two. The last segment holds them itself.
class SegmentWriter {
 public:
  SegmentWriter();
  ~SegmentWriter();

  // Writes `path` + ".tmp" and renames it to `path`; another path or another registry of trees begins anew. A failure
  // counts the loss write_failed with its sentence. `whole`: the last one, which holds the events itself.
  WriteResult write(const std::string& path, const SegmentSources& sources, bool whole) noexcept;

  // Forgets what was kept, and its memory.
  void clear() noexcept;

  // The tree that is kept for the numbers' sake; any thread.
  std::size_t held_bytes() const noexcept { return held_bytes_.load(std::memory_order_relaxed); }

 private:
  struct Kept;
  WriteResult write_files(const std::string& path, const SegmentSources& sources, bool whole);

  std::unique_ptr<Kept> kept_;
  std::atomic<std::size_t> held_bytes_{0};
};

// One segment, events included.
WriteResult write_segment(const std::string& path, const SegmentSources& sources) noexcept;
// Where the events of a running process stand.
std::string events_path(const std::string& segment_path);
// Beside a segment, with another end instead of ".segment".
std::string beside_segment(const std::string& segment_path, std::string_view end);

}  // namespace leadline
