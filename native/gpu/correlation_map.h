// From the vendor's correlation id to where the call was made; written at every launch, read when the device's record
// comes.
//
// A ring indexed by the id's low bits: no lock, no allocation, constant memory. An entry whose work is still out when
// its slot is needed again (kSlots calls later) moves to a small overflow table, so long-running work keeps its path.
// What neither holds is counted when its record arrives, as work without a launch.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "leadline/monitor.h"

namespace leadline::gpu {

struct Launch {
  leadline_context context = 0;
  std::int64_t start_ns = 0;       // begin of the API call
  std::uint32_t thread_marks = 0;  // which thread called, for Marks
  std::uint8_t kind = 0;           // leadline_gpu_kind
  std::uint32_t outer = 0;         // id of the runtime call around this driver call; 0: none, or the same
  bool paused = false;             // made while measuring rested: its work belongs nowhere
};

class CorrelationMap {
 public:
  static constexpr std::uint32_t kSlots = 1u << 17;
  static constexpr std::size_t kOverflow = 1u << 16;

  CorrelationMap() : slots_(std::make_unique<Slot[]>(kSlots)) {}

  // Any thread. `makes_work`: records are expected.
  void put(std::uint32_t id, const Launch& launch, bool makes_work) noexcept {
    Slot& slot = slots_[id & (kSlots - 1)];
    // Only one thread writes a slot at a time: the next id that falls on it is kSlots calls away.
    if (slot.state.load(std::memory_order_acquire) == kWaiting) move_to_overflow(slot);
    slot.state.exchange(kWriting, std::memory_order_acq_rel);
    slot.id.store(id, std::memory_order_relaxed);
    slot.context.store(launch.context, std::memory_order_relaxed);
    slot.start_ns.store(launch.start_ns, std::memory_order_relaxed);
    slot.meta.store(pack(launch), std::memory_order_relaxed);
    slot.state.store(makes_work ? kWaiting : kAnswered, std::memory_order_release);
    if (makes_work) launched_.fetch_add(1, std::memory_order_relaxed);
  }

  // Any thread. Records of this call will come after all; for vendors that tell when work is handed to the device.
  void expect(std::uint32_t id) noexcept {
    Slot& slot = slots_[id & (kSlots - 1)];
    if (slot.id.load(std::memory_order_relaxed) != id) return;
    std::uint32_t answered = kAnswered;
    if (slot.state.compare_exchange_strong(answered, kWaiting, std::memory_order_acq_rel)) {
      launched_.fetch_add(1, std::memory_order_relaxed);
    }
  }

  // Any thread. The call failed: nothing will come.
  void cancel(std::uint32_t id) noexcept {
    Slot& slot = slots_[id & (kSlots - 1)];
    if (slot.id.load(std::memory_order_relaxed) != id) return;
    std::uint32_t waiting = kWaiting;
    if (slot.state.compare_exchange_strong(waiting, kAnswered, std::memory_order_acq_rel)) {
      answered_.fetch_add(1, std::memory_order_relaxed);
    }
  }

  // The thread that folds records. Stays readable until the slot is reused: a graph launch is asked for once per node.
  std::optional<Launch> get(std::uint32_t id) noexcept {
    Slot& slot = slots_[id & (kSlots - 1)];
    const std::uint32_t before = slot.state.load(std::memory_order_acquire);
    if (before != kEmpty && before != kWriting) {
      Launch launch;
      const bool same = slot.id.load(std::memory_order_acquire) == id;
      launch.context = slot.context.load(std::memory_order_acquire);
      launch.start_ns = slot.start_ns.load(std::memory_order_acquire);
      unpack(slot.meta.load(std::memory_order_acquire), &launch);
      // Still the same entry: its writer would have changed the id or be at it.
      if (same && slot.id.load(std::memory_order_relaxed) == id &&
          slot.state.load(std::memory_order_relaxed) != kWriting) {
        std::uint32_t waiting = kWaiting;
        if (slot.state.compare_exchange_strong(waiting, kAnswered, std::memory_order_acq_rel)) {
          answered_.fetch_add(1, std::memory_order_relaxed);
        }
        return launch;
      }
    }
    return from_overflow(id);
  }

  // Calls whose records have not come (graph launches count until their first node).
  std::uint64_t outstanding() const noexcept {
    const std::uint64_t answered = answered_.load(std::memory_order_relaxed);
    const std::uint64_t launched = launched_.load(std::memory_order_relaxed);
    return launched > answered ? launched - answered : 0;
  }
  // Entries given up because the overflow table was full or busy.
  std::uint64_t forgotten() const noexcept { return forgotten_.load(std::memory_order_relaxed); }
  std::size_t held_bytes() const noexcept { return sizeof(Slot) * kSlots; }

 private:
  enum : std::uint32_t { kEmpty, kWriting, kWaiting, kAnswered };
  struct Slot {
    std::atomic<std::uint32_t> id{0};
    std::atomic<std::uint32_t> state{kEmpty};
    std::atomic<std::uint64_t> context{0};
    std::atomic<std::int64_t> start_ns{0};
    std::atomic<std::uint64_t> meta{0};
  };

  // 32 bits of the outer id, 1 for paused, 23 of the thread's ring, 8 of the kind.
  static std::uint64_t pack(const Launch& launch) noexcept {
    return std::uint64_t{launch.outer} << 32 | std::uint64_t{launch.paused} << 31 |
           std::uint64_t{launch.thread_marks} << 8 | launch.kind;
  }
  static void unpack(std::uint64_t meta, Launch* launch) noexcept {
    launch->outer = static_cast<std::uint32_t>(meta >> 32);
    launch->thread_marks = static_cast<std::uint32_t>(meta >> 8) & 0x7fffffu;
    launch->paused = (meta >> 31 & 1) != 0;
    launch->kind = static_cast<std::uint8_t>(meta);
  }

  void move_to_overflow(Slot& slot) noexcept {
    const std::unique_lock lock(overflow_mutex_, std::try_to_lock);
    if (!lock || overflow_.size() >= kOverflow) {
      forgotten_.fetch_add(1, std::memory_order_relaxed);
      answered_.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    Launch launch;
    launch.context = slot.context.load(std::memory_order_relaxed);
    launch.start_ns = slot.start_ns.load(std::memory_order_relaxed);
    unpack(slot.meta.load(std::memory_order_relaxed), &launch);
    try {
      overflow_[slot.id.load(std::memory_order_relaxed)] = launch;
      has_overflow_.store(true, std::memory_order_relaxed);
    } catch (...) {
      forgotten_.fetch_add(1, std::memory_order_relaxed);
    }
  }

  std::optional<Launch> from_overflow(std::uint32_t id) noexcept {
    if (!has_overflow_.load(std::memory_order_relaxed)) return std::nullopt;
    const std::lock_guard lock(overflow_mutex_);
    const auto found = overflow_.find(id);
    if (found == overflow_.end()) return std::nullopt;
    const Launch launch = found->second;
    if (launch.kind != LEADLINE_GPU_GRAPH_LAUNCH) overflow_.erase(found);
    answered_.fetch_add(1, std::memory_order_relaxed);
    return launch;
  }

  std::unique_ptr<Slot[]> slots_;
  std::atomic<std::uint64_t> launched_{0};
  std::atomic<std::uint64_t> answered_{0};
  std::atomic<std::uint64_t> forgotten_{0};
  std::atomic<bool> has_overflow_{false};
  std::mutex overflow_mutex_;  // taken only when the ring has gone round; a launch only ever tries
  std::unordered_map<std::uint32_t, Launch> overflow_;
};

}  // namespace leadline::gpu
