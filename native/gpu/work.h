// One finished piece of device work as one plain structure, on the host's clock: what a vendor's decoder makes of its
// records and the fold takes.
#pragma once

#include <cstdint>

namespace leadline::gpu {

// Written into recordings as numbers: append only. The same holds for the two below.
enum class WorkKind : std::uint8_t {
  kKernel = 0,
  kCopy = 1,
  kSet = 2,
  kWait = 3,      // of the host for the device
  kOverhead = 4,  // of the vendor's profiling library
  kGraph = 5,     // a replayed graph as a whole
  kNone = 6,      // of no use here, or without times
};

enum class Direction : std::uint8_t { kUnknown, kHtoD, kDtoH, kHtoA, kAtoH, kAtoA, kAtoD, kDtoA, kDtoD, kHtoH, kPtoP };
inline constexpr std::size_t kDirections = 11;

enum class Memory : std::uint8_t {
  kUnknown,
  kPageable,
  kPinned,
  kDevice,
  kArray,
  kManaged,
  kDeviceStatic,
  kManagedStatic,
  kHost  // the host's, where it is not known how it was taken
};
inline constexpr std::size_t kMemories = 9;

struct Work {
  WorkKind kind = WorkKind::kKernel;
  std::uint32_t correlation = 0;
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::int32_t device = -1;
  std::int64_t stream = -1;
  std::uint32_t context = 0;     // the vendor's number of the context that the stream belongs to
  std::uint64_t graph_node = 0;  // of a replayed graph, else 0
  std::uint32_t graph = 0;       // the executable graph that was replayed, else 0
  // Kernel: its mangled name, valid as long as the record; overhead: what it was, a literal.
  const char* name = nullptr;
  std::int64_t bytes = 0;
  Direction direction = Direction::kUnknown;
  Memory source = Memory::kUnknown;
  Memory destination = Memory::kUnknown;  // of a copy or set
  // A copy between devices: the one that it came from, and what joins the two in the vendor's word, a literal; -1 and
  // null where they are not told.
  std::int32_t peer = -1;
  const char* link = nullptr;
  bool holds_thread = true;  // wait: the thread that called stood still
  std::int64_t blocks = 0;
  std::int32_t block_threads = 0;
  std::int32_t registers = 0;
  std::int32_t accumulation_registers = 0;  // those of matrix units, where they are apart
  std::int32_t scalar_registers = 0;        // of a whole warp, where there are such
  std::int32_t scratch = 0;                 // bytes of a thread's own memory
  std::uint64_t queue = 0;                  // the hardware's, where scratch memory is told by it
  std::int32_t static_shared = 0;
  std::int32_t dynamic_shared = 0;
  std::int32_t shared_executed = 0;
};

// As torch.profiler names them, so that the two can be compared: "Memcpy HtoD (Pinned -> Device)", "Memset (Device)".
// Literals for the life of the process.
const char* copy_name(const Work& work) noexcept;
const char* set_name(const Work& work) noexcept;
// {"direction": "HtoD"}, or nullptr where none is to be told.
const char* copy_detail(const Work& work) noexcept;

}  // namespace leadline::gpu
