// Sixty-four trackers of one context: memory for the sums of a launch each, on the device and pinned on the host.
//
// Nothing waits. A launch takes a tracker, sets it up in the order of its stream and goes on; whoever looks later
// (harvest) finds the launch complete in pinned memory. Memory is taken when a tracker is used first or the table of
// objects has outgrown it, and given back at the end only.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "backends/device/tracker.h"
#include "backends/sanitizer/losses.h"
#include "backends/sanitizer/object_table.h"
#include "backends/sanitizer/rows.h"
#include "backends/sanitizer/sanitizer_abi.h"
#include "base/spin_lock.h"

namespace leadline::sanitizer {

// The same for all launches of a run.
struct Shape {
  std::array<std::uint64_t, kPageSizes> page_sizes{};  // multiples of 1 << page_shift; 0: none
  std::uint32_t page_shift = 12;
  std::uint32_t want = device::kWantPages;
  std::uint32_t element = device::kOther;
  bool words = false;  // page bits come along, for several sizes
  // How analysis on the host compares: so many accesses of a launch come as they are, and are added up here; one launch
  // at a time, each waiting for the one before (kWantRaw). 0: sums are made on the device.
  std::uint64_t raw_room = 0;
};

// One launch, as it will be told.
struct Flight {
  std::int64_t launch = 0;
  std::int64_t time_ns = 0;
  std::uint64_t place = 0;
  std::uint64_t function_pc = 0;
  std::uint64_t threads = 0;  // of the grid
  std::uint32_t name = 0;
  const void* stream = nullptr;  // by which launches are in order
  std::uint64_t group = 0;       // launches of one group may overlap: nodes of one graph's launch. 0: of none
};

struct Outlets {
  RowQueue<TouchedRow> touched{std::size_t{1} << 17};
  RowQueue<InstructionRow> instructions{std::size_t{1} << 15};
  RowQueue<DoneRow> done{std::size_t{1} << 15};
};

class Trackers {
 public:
  static constexpr std::size_t kCount = 64;
  static constexpr std::uint32_t kMostRows = 1024;
  static constexpr std::uint32_t kMostInstructions = 1024;
  static constexpr std::uint32_t kMostBlocks = 4096;  // at work at once whose barriers are followed

  Trackers(const abi::Functions& functions, abi::Context context, const Shape& shape, ObjectTable& objects,
           Outlets& out, LostCounts& lost);
  Trackers(const Trackers&) = delete;
  Trackers& operator=(const Trackers&) = delete;
  ~Trackers() = default;  // memory on the device is let go by free_all() only

  // Sets a tracker up for a launch that is about to be made. False with *why when there is none.
  bool begin(const Flight& flight, const abi::LaunchData& launch, abi::StreamHandle order, Lost* why) noexcept;
  // Tells what is complete; one caller at a time.
  void harvest() noexcept;
  std::size_t under_way() const noexcept { return under_way_.load(std::memory_order_acquire); }
  // What is under way is lost, and nothing of this context is touched any more.
  void abandon(Lost why) noexcept;
  // Only where nothing is under way, and outside of callbacks.
  void free_all() noexcept;
  abi::Context context() const noexcept { return context_; }
  bool gone() const noexcept { return gone_.load(std::memory_order_acquire); }

 private:
  enum class State : std::uint8_t { kFree, kTaken, kUnderWay };
  struct Slot {
    std::atomic<State> state{State::kFree};
    Flight flight;
    std::uint64_t token = 0;  // Setup::launch
    std::uint64_t epoch = 0;  // of the ranges it holds
    std::size_t ranges = 0;
    std::size_t range_room = 0;
    std::size_t word_room = 0;
    bool dirty = true;  // to be cleared before it is used
    // On the device.
    device::Tracker* tracker = nullptr;
    device::Instruction* instructions = nullptr;
    device::Block* blocks = nullptr;
    std::byte* tables = nullptr;  // ranges, sums, touched, page words
    std::size_t table_bytes = 0;
    // Pinned.
    device::Setup* setup = nullptr;
    device::Result* result = nullptr;
    device::Row* rows = nullptr;
    device::Instruction* result_instructions = nullptr;
    std::byte* pinned_tables = nullptr;  // ranges, page words of the result
    device::Range* staged = nullptr;
    std::uint32_t* words = nullptr;
    device::RawAccess* raw = nullptr;
    std::vector<std::uint64_t> offsets;  // of each range in its object
  };
  struct Layout {
    std::size_t sums;
    std::size_t touched;
    std::size_t words;
    std::size_t bytes;
  };

  Slot* take() noexcept;
  Slot* wait_for_the_one() noexcept;
  void give_back(Slot* slot) noexcept;
  bool first_memory(Slot* slot) noexcept;
  bool grow(Slot* slot, std::size_t ranges, std::size_t words) noexcept;
  bool upload(Slot* slot, abi::StreamHandle order, Lost* why) noexcept;
  void* on_device(std::size_t bytes) noexcept;
  void* pinned(std::size_t bytes) noexcept;
  std::size_t room_of_blocks() const noexcept;
  static Layout layout(std::size_t ranges, std::size_t words) noexcept;
  static bool complete(const Slot& slot) noexcept;
  void tell(const Slot& slot) noexcept;
  void tell_row(const Slot& slot, const device::Row& row, const std::uint32_t* words, std::size_t room) noexcept;
  void tell_stream(const Slot& slot) noexcept;
  void drop(Slot* slot, Lost why) noexcept;

  const abi::Functions& functions_;
  const abi::Context context_;
  const Shape shape_;
  ObjectTable& objects_;
  Outlets& out_;
  LostCounts& lost_;
  std::array<Slot, kCount> slots_;
  SpinLock free_lock_;
  std::array<Slot*, kCount> free_{};
  std::size_t free_count_ = 0;
  std::atomic<std::size_t> under_way_{0};
  std::atomic<bool> gone_{false};
  SpinLock memory_lock_;
  std::vector<void*> device_memory_;
  std::vector<void*> pinned_memory_;
  std::atomic<std::uint64_t> next_token_{1};
};

}  // namespace leadline::sanitizer
