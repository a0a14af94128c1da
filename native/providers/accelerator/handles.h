// Names of kernels by the handles that stand for them: a call that makes one is given the name, launches are given the
// handle. Bounded; calls that make handles are rare.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <unordered_map>

#include "base/hash.h"
#include "base/spin_lock.h"
#include "providers/accelerator/in_flight.h"

namespace leadline::accelerator {

class Handles {
 public:
  static constexpr std::size_t kMost = 1u << 14;
  using Name = std::array<char, kNameBytes>;

  // False where there is no room.
  bool put(std::uint64_t space, std::uint64_t handle, const Name& name) noexcept {
    try {
      const std::lock_guard lock(lock_);
      const std::uint64_t key = hash_mix(handle, space);
      if (names_.size() >= kMost && !names_.contains(key)) return false;
      names_.insert_or_assign(key, name);
      return true;
    } catch (...) {
      return false;
    }
  }
  bool get(std::uint64_t space, std::uint64_t handle, Name* name) const noexcept {
    const std::lock_guard lock(lock_);
    const auto found = names_.find(hash_mix(handle, space));
    if (found == names_.end()) return false;
    *name = found->second;
    return true;
  }

 private:
  mutable SpinLock lock_;
  std::unordered_map<std::uint64_t, Name> names_;
};

}  // namespace leadline::accelerator
