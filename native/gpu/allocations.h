// Device memory taken from the driver: address to bytes, so that giving back can be counted in bytes.
//
// Calls that take memory are slow, so a lock is affordable, but it is only tried: a busy table counts a loss instead.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <unordered_map>

namespace leadline::gpu {

class Allocations {
 public:
  static constexpr std::size_t kMost = 1u << 20;

  // False when it could not be booked.
  bool taken(std::uint64_t address, std::int64_t bytes, bool measured) noexcept {
    const std::unique_lock lock = try_lock();
    if (!lock || bytes_.size() >= kMost) return false;
    try {
      bytes_[address] = measured ? bytes : kUnmeasured;
    } catch (...) {
      return false;
    }
    return true;
  }

  struct Given {
    bool busy = false;                  // could not be looked up
    bool unmeasured = false;            // taken while measuring rested
    std::optional<std::int64_t> bytes;  // nullopt: that, or taken before measuring began
  };
  Given given_back(std::uint64_t address) noexcept {
    const std::unique_lock lock = try_lock();
    if (!lock) return {.busy = true, .unmeasured = false, .bytes = {}};
    const auto found = bytes_.find(address);
    if (found == bytes_.end()) return {};
    const std::int64_t bytes = found->second;
    bytes_.erase(found);
    if (bytes == kUnmeasured) return {.busy = false, .unmeasured = true, .bytes = {}};
    return {.busy = false, .unmeasured = false, .bytes = bytes};
  }

 private:
  static constexpr std::int64_t kUnmeasured = -1;
  std::unique_lock<std::mutex> try_lock() noexcept {
    constexpr int kTries = 64;
    std::unique_lock lock(mutex_, std::try_to_lock);
    for (int i = 0; i < kTries && !lock; ++i) lock = std::unique_lock(mutex_, std::try_to_lock);
    return lock;
  }

  std::mutex mutex_;
  std::unordered_map<std::uint64_t, std::int64_t> bytes_;
};

}  // namespace leadline::gpu
