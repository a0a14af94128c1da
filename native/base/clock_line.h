// How now_ns() reads the clock, in the place where it is asked for: twice for every operator.
#pragma once

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <limits>

namespace leadline::clock_line {

__extension__ using Wide = unsigned __int128;

#if defined(__x86_64__)
inline std::uint64_t read_counter() noexcept { return __rdtsc(); }
#elif defined(__aarch64__)
inline std::uint64_t read_counter() noexcept {
  std::uint64_t ticks;
  asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
}
#else
inline std::uint64_t read_counter() noexcept { return 0; }
#endif

struct Line {
  std::uint64_t base_ticks = 0;
  std::int64_t base_ns = 0;
  std::uint64_t scale = 0;        // ns per tick in units of 2^-32
  std::uint64_t valid_ticks = 0;  // compare again after so many; 0 sends every call to the slow path

  std::int64_t at(std::uint64_t ticks) const noexcept {
    const auto passed = static_cast<std::int64_t>(ticks - base_ticks);
    if (passed <= 0) return base_ns;  // the counter was read a moment before the line was
    return base_ns + static_cast<std::int64_t>(static_cast<std::uint64_t>(
                         (static_cast<Wide>(static_cast<std::uint64_t>(passed)) * scale) >> 32));
  }
};

// Two lines and a version: readers take line version % 2, the writer fills the other one and then advances the version.
// Release stores and acquire loads of the fields keep "version unchanged" after the fields, which makes the read whole.
// All in one line of the cache, which every event reads twice.
class alignas(64) SharedLine {
 public:
  bool load(Line& line) const noexcept {
    const std::uint32_t version = version_.load(std::memory_order_acquire);
    const Slot& slot = slots_[version & 1];
    line.base_ticks = slot.base_ticks.load(std::memory_order_acquire);
    line.base_ns = slot.base_ns.load(std::memory_order_acquire);
    line.scale = slot.scale.load(std::memory_order_acquire);
    line.valid_ticks = valid_ticks_[version & 1].load(std::memory_order_acquire);
    return version_.load(std::memory_order_relaxed) == version;
  }
  void store(const Line& line) noexcept {
    constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();  // asked again sooner, and no harm done
    const std::uint32_t version = version_.load(std::memory_order_relaxed) + 1;
    Slot& slot = slots_[version & 1];
    slot.base_ticks.store(line.base_ticks, std::memory_order_release);
    slot.base_ns.store(line.base_ns, std::memory_order_release);
    slot.scale.store(line.scale, std::memory_order_release);
    valid_ticks_[version & 1].store(static_cast<std::uint32_t>(std::min(line.valid_ticks, kMost)),
                                    std::memory_order_release);
    version_.store(version, std::memory_order_release);
  }

 private:
  struct Slot {
    std::atomic<std::uint64_t> base_ticks{0};
    std::atomic<std::int64_t> base_ns{0};
    std::atomic<std::uint64_t> scale{0};
  };
  std::array<Slot, 2> slots_{};
  std::array<std::atomic<std::uint32_t>, 2> valid_ticks_{};
  std::atomic<std::uint32_t> version_{0};
};
static_assert(sizeof(SharedLine) == 64);

extern constinit SharedLine line;

// Beyond the line's validity, or without one.
std::int64_t slow_now(const Line& line, std::uint64_t ticks) noexcept;

}  // namespace leadline::clock_line
