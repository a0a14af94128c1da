#include "cct/memory_ledger.h"

#include <sched.h>

#include <array>
#include <memory>

#include "base/abandon.h"
#include "base/chunked_array.h"
#include "base/hash.h"
#include "base/index_table.h"
#include "cct/block_map.h"

namespace leadline {

struct MemoryLedger::Event {
  enum class Kind : std::uint8_t { kAllocate, kRelease, kReleaseAtOwner, kAllocateUnmeasured, kReleaseUnmeasured };
  Kind kind = Kind::kAllocate;
  std::int16_t device = kCpuDevice;
  ThreadIndex thread = kNoThread;
  NodeId node = kNoNode;
  std::uint64_t address = 0;
  std::int64_t bytes = 0;
};

// Bounded queue, many producers; the holder of the ledger consumes. A cell's turn is even when it waits for the
// producer of that lap and odd when it waits for the consumer. The consumer stops at a cell that is claimed but not yet
// filled, which keeps the order in which producers came.
class MemoryLedger::Queue {
 public:
  bool push(const Event& event) noexcept {
    std::uint64_t at = tail_.load(std::memory_order_relaxed);
    for (;;) {
      Cell& cell = cells_[at % kQueueEvents];
      const std::uint64_t turn = cell.turn.load(std::memory_order_acquire);
      const std::uint64_t wanted = at / kQueueEvents * 2;
      if (turn == wanted) {
        if (tail_.compare_exchange_weak(at, at + 1, std::memory_order_relaxed)) {
          cell.event = event;
          cell.turn.store(wanted + 1, std::memory_order_release);
          return true;
        }
      } else if (turn < wanted) {
        return false;
      } else {
        at = tail_.load(std::memory_order_relaxed);
      }
    }
  }
  bool pop(Event& event) noexcept {
    const std::uint64_t at = head_.load(std::memory_order_relaxed);
    Cell& cell = cells_[at % kQueueEvents];
    const std::uint64_t lap = at / kQueueEvents * 2;
    if (cell.turn.load(std::memory_order_acquire) != lap + 1) return false;
    event = cell.event;
    cell.turn.store(lap + 2, std::memory_order_release);
    head_.store(at + 1, std::memory_order_relaxed);
    return true;
  }
  bool empty() const noexcept { return head_.load(std::memory_order_relaxed) == tail_.load(std::memory_order_acquire); }
  void clear() noexcept {
    for (Cell& cell : cells_) cell.turn.store(0, std::memory_order_relaxed);
    head_.store(0, std::memory_order_relaxed);
    tail_.store(0, std::memory_order_relaxed);
  }

 private:
  struct Cell {
    std::atomic<std::uint64_t> turn{0};
    Event event;
  };
  std::array<Cell, kQueueEvents> cells_{};
  std::atomic<std::uint64_t> tail_{0};
  std::atomic<std::uint64_t> head_{0};
};

struct MemoryLedger::Books {
  struct Owner {
    std::int16_t device;
    ThreadIndex thread;
    NodeId node;
    std::int64_t live_bytes = 0;
    std::int64_t saved_bytes = 0;  // at the peak, when `epoch` is the device's
    std::uint64_t epoch = 0;
    MetricValues freed{};  // of what it allocated, where nobody else books that
  };
  struct Device {
    std::int64_t live_bytes = 0;
    std::int64_t peak_bytes = 0;
    std::uint64_t epoch = 0;  // number of peaks so far
    bool seen = false;
  };
  BlockMap blocks;
  ChunkedArray<FreedLater, 16> freed;
  IndexTable freed_index;
  ChunkedArray<Owner> owners;
  IndexTable owner_index;
  ChunkedArray<Device, 16> devices;  // the CPU first, then by row

  // A device that meet() has let in.
  Device& device(std::int16_t row) noexcept { return devices[static_cast<std::uint32_t>(row + 1)]; }

  // Makes room for the device when it is new; false when there is no memory, or it is none.
  bool meet(std::int16_t row) noexcept {
    if (row < kCpuDevice) return false;
    const auto number = static_cast<std::uint32_t>(row + 1);
    while (devices.size() <= number) {
      if (devices.emplace_back() == nullptr) return false;
    }
    return true;
  }

  static std::uint64_t hash_of(const Owner& owner) noexcept {
    return hash_mix(std::uint64_t{raw(owner.thread)} << 32 | raw(owner.node), static_cast<std::uint16_t>(owner.device));
  }

  // Number of the owner, or IndexTable::kAbsent when there is no memory.
  std::uint32_t owner_of(const Event& event) noexcept {
    const Owner wanted{event.device, event.thread, event.node};
    const std::uint64_t hash = hash_of(wanted);
    const std::uint32_t known = owner_index.find(hash, [&](std::uint32_t at) {
      const Owner& owner = owners[at];
      return owner.node == wanted.node && owner.thread == wanted.thread && owner.device == wanted.device;
    });
    if (known != IndexTable::kAbsent) return known;
    const std::uint32_t number = owners.size();
    if (!owner_index.reserve_one()) return IndexTable::kAbsent;
    if (owners.emplace_back(wanted) == nullptr) return IndexTable::kAbsent;
    owner_index.insert(hash, number);
    return number;
  }

  // False when there is no memory.
  bool add_freed(const Event& event, std::int64_t bytes) noexcept {
    const std::uint64_t hash = hash_of(Owner{event.device, event.thread, event.node});
    std::uint32_t number = freed_index.find(hash, [&](std::uint32_t at) {
      const FreedLater& known = freed[at];
      return known.node == event.node && known.thread == event.thread && known.device == event.device;
    });
    if (number == IndexTable::kAbsent) {
      number = freed.size();
      if (!freed_index.reserve_one()) return false;
      if (freed.emplace_back(FreedLater{event.device, event.thread, event.node, {}}) == nullptr) return false;
      freed_index.insert(hash, number);
    }
    freed[number].bytes.merge(MetricValues::of(bytes));
    return true;
  }

  void change(Owner& owner, std::int64_t bytes) noexcept {
    Device& device = this->device(owner.device);
    if (owner.epoch < device.epoch) {
      owner.saved_bytes = owner.live_bytes;
      owner.epoch = device.epoch;
    }
    owner.live_bytes += bytes;
    device.live_bytes += bytes;
    if (device.live_bytes > device.peak_bytes) {
      device.peak_bytes = device.live_bytes;
      ++device.epoch;
    }
  }

  std::int64_t at_peak(const Owner& owner) noexcept {
    return owner.epoch < device(owner.device).epoch ? owner.live_bytes : owner.saved_bytes;
  }

  std::int64_t release(std::uint64_t address, bool at_owner = false) noexcept {
    BlockMap::Block block;
    if (!blocks.take(address, block)) return kUnknownBytes;
    Owner& owner = owners[block.owner];
    if (owner.thread == kNoThread) return kUnmeasured;
    change(owner, -block.bytes);
    if (at_owner) owner.freed.merge(MetricValues::of(block.bytes));
    return block.bytes;
  }

  // False when there is no memory.
  bool allocate_unmeasured(const Event& event) noexcept {
    if (!meet(event.device)) return false;
    release(event.address, true);
    const std::uint32_t nobody = owner_of(event);
    return nobody != IndexTable::kAbsent && blocks.insert({event.address, 0, nobody});
  }

  bool allocate(const Event& event) noexcept {
    if (!meet(event.device)) return false;
    release(event.address);
    const std::uint32_t owner = owner_of(event);
    if (owner == IndexTable::kAbsent || !blocks.insert({event.address, event.bytes, owner})) return false;
    device(event.device).seen = true;
    change(owners[owner], event.bytes);
    return true;
  }
};

MemoryLedger::Hold::Hold(MemoryLedger& ledger) noexcept : ledger_(ledger) {
  ledger_.lock_.lock();
  ledger_.drain();
}

MemoryLedger::Hold::~Hold() { ledger_.lock_.unlock(); }

MemoryLedger::MemoryLedger(LossCounters& losses)
    : losses_(&losses), books_(std::make_unique<Books>()), queue_(std::make_unique<Queue>()) {}

MemoryLedger::~MemoryLedger() = default;

void MemoryLedger::allocate(std::uint64_t address, std::int64_t bytes, std::int16_t device, ThreadIndex thread,
                            NodeId node) noexcept {
  if (address == 0) return;  // nothing was allocated
  submit({Event::Kind::kAllocate, device, thread, node, address, bytes < 0 ? 0 : bytes});
}

std::int64_t MemoryLedger::release(std::uint64_t address, std::int16_t device, ThreadIndex thread,
                                   NodeId node) noexcept {
  if (address == 0) return 0;
  return submit({Event::Kind::kRelease, device, thread, node, address, 0});
}

std::int64_t MemoryLedger::release_at_owner(std::uint64_t address) noexcept {
  if (address == 0) return 0;
  return submit({Event::Kind::kReleaseAtOwner, kCpuDevice, kNoThread, kNoNode, address, 0});
}

void MemoryLedger::allocate_unmeasured(std::uint64_t address) noexcept {
  if (address != 0) submit({Event::Kind::kAllocateUnmeasured, kCpuDevice, kNoThread, kNoNode, address, 0});
}

void MemoryLedger::release_unmeasured(std::uint64_t address) noexcept {
  if (address != 0) submit({Event::Kind::kReleaseUnmeasured, kCpuDevice, kNoThread, kNoNode, address, 0});
}

std::int64_t MemoryLedger::submit(const Event& event) noexcept {
  std::int64_t bytes = kUnknownBytes;
  for (int attempt = 0;; ++attempt) {
    if (lock_.try_lock()) {
      bytes = book_in_order(event);
      lock_.unlock();
      break;
    }
    if (queue_->push(event)) {
      bytes = kLater;
      break;
    }
    if (attempt == kPatience) {
      losses_->count(LossKind::kMemoryEventsDropped, 1, "more threads allocated at once than could be booked");
      break;
    }
    sched_yield();
  }
  // What others queued while this thread was the holder; a new holder drains it anyway.
  if (!queue_->empty() && lock_.try_lock()) {
    drain();
    lock_.unlock();
  }
  return bytes;
}

// Holder only. What is just being put into the queue came before this event, which must not overtake it.
std::int64_t MemoryLedger::book_in_order(const Event& event) noexcept {
  if (queue_->empty() || drain()) return book(event, false);
  if (queue_->push(event)) return kLater;
  losses_->count(LossKind::kMemoryEventsDropped, 1, "more threads allocated at once than could be booked");
  return kUnknownBytes;
}

std::int64_t MemoryLedger::book(const Event& event, bool later) noexcept {
  changes_.store(changes_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  if (event.kind == Event::Kind::kAllocate) {
    if (!books_->allocate(event)) {
      losses_->count(LossKind::kMemoryEventsDropped, 1,
                     "an allocation could not be booked, because memory is short or its device number is out of range");
    }
    return event.bytes;
  }
  if (event.kind == Event::Kind::kAllocateUnmeasured) {
    if (!books_->allocate_unmeasured(event))
      losses_->count(LossKind::kMemoryEventsDropped, 1, "memory is short for what was allocated in a pause");
    return kUnmeasured;
  }
  const std::int64_t bytes = books_->release(event.address, event.kind != Event::Kind::kRelease);
  if (event.kind == Event::Kind::kReleaseUnmeasured) return kUnmeasured;
  if (bytes == kUnmeasured) return bytes;
  if (bytes == kUnknownBytes) {
    losses_->count(LossKind::kFreeUnknown);
  } else if (later && event.thread != kNoThread && !books_->add_freed(event, bytes)) {
    losses_->count(LossKind::kMemoryEventsDropped, 1, "a free could not be booked because memory is short");
  }
  return bytes;
}

// True when the queue is empty afterwards.
bool MemoryLedger::drain() noexcept {
  Event event;
  while (queue_->pop(event)) book(event, true);
  return queue_->empty();
}

std::vector<PeakShare> MemoryLedger::peak_shares() {
  std::vector<PeakShare> shares;
  shares.reserve(books_->owners.size() + std::size_t{64});  // not while holding: others are waiting then
  const Hold hold(*this);
  const std::uint32_t owners = books_->owners.size();
  for (std::uint32_t i = 0; i < owners; ++i) {
    const Books::Owner& owner = books_->owners[i];
    const std::int64_t bytes = books_->at_peak(owner);
    if (bytes != 0) shares.push_back({owner.device, owner.thread, owner.node, bytes});
  }
  return shares;
}

std::vector<FreedLater> MemoryLedger::freed_later() {
  std::vector<FreedLater> freed;
  const Hold hold(*this);
  freed.reserve(books_->freed.size());
  for (std::uint32_t i = 0; i < books_->freed.size(); ++i) freed.push_back(books_->freed[i]);
  for (std::uint32_t i = 0; i < books_->owners.size(); ++i) {
    const Books::Owner& owner = books_->owners[i];
    if (owner.freed.count != 0) freed.push_back({owner.device, owner.thread, owner.node, owner.freed});
  }
  return freed;
}

LiveRanges MemoryLedger::live_ranges() {
  std::vector<LiveRange> ranges;
  ranges.reserve(live_blocks());
  {
    const Hold hold(*this);
    books_->blocks.for_each([&](const BlockMap::Block& block) {
      const Books::Owner& owner = books_->owners[block.owner];
      if (owner.thread == kNoThread) return;
      ranges.push_back({block.address, block.bytes, owner.device, owner.thread, owner.node});
    });
  }
  return LiveRanges(std::move(ranges));
}

std::vector<DeviceLive> MemoryLedger::devices() {
  std::vector<DeviceLive> devices;
  const Hold hold(*this);
  for (std::uint32_t number = 0; number < books_->devices.size(); ++number) {
    const Books::Device& device = books_->devices[number];
    const auto row = static_cast<std::int16_t>(static_cast<std::int32_t>(number) + kCpuDevice);
    if (device.seen) devices.push_back({row, device.live_bytes, device.peak_bytes});
  }
  return devices;
}

std::size_t MemoryLedger::live_blocks() {
  const Hold hold(*this);
  return books_->blocks.size();
}

std::size_t MemoryLedger::held_bytes() const noexcept {
  return sizeof(Books) + sizeof(Queue) + books_->blocks.held_bytes() + books_->owners.held_bytes() +
         books_->freed.held_bytes() + books_->freed_index.held_bytes() + books_->owner_index.held_bytes() +
         books_->devices.held_bytes();
}

void MemoryLedger::clear() noexcept {
  lock_.reset();
  queue_->clear();
  abandon(*books_);
}

}  // namespace leadline
