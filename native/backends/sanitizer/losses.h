// What could not be measured, counted by its reason; the sentences are those of python/leadline/tools/backends.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace leadline::sanitizer {

enum class Lost : std::uint8_t {
  kNoTracker,         // launches that found no tracker free
  kNotPatched,        // launches whose code could not be patched
  kPatchedMeanwhile,  // launches that began while another thread patched code
  kNoMemory,          // launches for whose sums the device or the host had no memory
  kRefused,           // launches whose set-up the library refused
  kNeverCompleted,    // launches that ended without reporting their sums
  kAtStop,            // launches that were under way when measuring stopped
  kContextGone,       // launches under way in a context that was destroyed
  kRows,              // objects that a launch touched and that found no room in its result
  kInstructions,      // instructions that found no room in a launch's result
  kOut,               // rows that nobody fetched in time
  kObjects,           // objects that found no room in the table
  kOutside,           // accesses outside of every known object
  kTma,               // copies by tensor maps, whose bytes are not followed
  kArrivals,          // arrivals of warps at barriers whose waits could not be followed
  kRaw,               // accesses that found no room in the stream of a launch (Shape::raw_room)
  kCount,
};

class LostCounts {
 public:
  void add(Lost what, std::uint64_t count = 1) noexcept {
    counts_[static_cast<std::size_t>(what)].fetch_add(count, std::memory_order_relaxed);
  }
  std::uint64_t of(Lost what) const noexcept {
    return counts_[static_cast<std::size_t>(what)].load(std::memory_order_relaxed);
  }

 private:
  std::array<std::atomic<std::uint64_t>, static_cast<std::size_t>(Lost::kCount)> counts_{};
};

}  // namespace leadline::sanitizer
