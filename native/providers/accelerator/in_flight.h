// Work between its launch and its end, by the id that the library gave it.
//
// Constant memory. A bucket is locked for as long as a few words take to copy, by launches and by whoever tells ends;
// no call of anybody is made meanwhile. A library may tell an end before the call that launched the work has answered
// with its id: such ends wait here for their launch.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include "base/hash.h"
#include "base/spin_lock.h"
#include "gpu/work.h"

namespace leadline::accelerator {

inline constexpr std::size_t kNameBytes = 128;
inline constexpr std::int64_t kUnknownTime = INT64_MIN;

// What a launch says of its work.
struct Request {
  gpu::WorkKind kind = gpu::WorkKind::kKernel;
  gpu::Direction direction = gpu::Direction::kUnknown;
  std::uint32_t correlation = 0;
  std::int32_t device = 0;
  std::int64_t stream = 0;
  std::int64_t bytes = 0;
  std::int64_t called_ns = 0;
  std::array<char, kNameBytes> name{};
};

// When work ran, on the monitor's clock.
struct Ran {
  std::int64_t start_ns = kUnknownTime;
  std::int64_t end_ns = 0;
  std::int64_t told_ns = 0;
};

class InFlight {
 public:
  InFlight() : buckets_(std::make_unique<Bucket[]>(kBuckets)) {}

  struct Put {
    bool forgot = false;     // older work of this id, or of another where there was no room
    std::optional<Ran> ran;  // its end has been told
  };
  // Work was launched.
  Put put(std::uint64_t space, std::uint64_t id, const Request& request) noexcept {
    Bucket& bucket = this->bucket(space, id);
    const std::lock_guard lock(bucket.lock);
    if (Entry* early = bucket.find(space, id); early != nullptr && early->state == kEnded) {
      early->state = kFree;
      // What was told before the call was of other work, whose id this one has now.
      if (early->ran.told_ns >= request.called_ns) return {false, early->ran};
    }
    bool forgot = false;
    Entry& entry = bucket.room(space, id, &forgot);
    entry.state = kLaunched;
    entry.request = request;
    return {forgot, std::nullopt};
  }

  // Its end was told. `keep`: its launch may not have said so yet.
  std::optional<Request> take(std::uint64_t space, std::uint64_t id, const Ran& ran, bool keep) noexcept {
    Bucket& bucket = this->bucket(space, id);
    const std::lock_guard lock(bucket.lock);
    Entry* entry = bucket.find(space, id);
    if (entry != nullptr && entry->state == kLaunched) {
      entry->state = kFree;
      return entry->request;
    }
    if (keep) {
      bool forgot = false;
      Entry& early = entry != nullptr ? *entry : bucket.room(space, id, &forgot);
      early.state = kEnded;
      early.ran = ran;
    }
    return std::nullopt;
  }

  // The launch failed.
  void forget(std::uint64_t space, std::uint64_t id) noexcept {
    Bucket& bucket = this->bucket(space, id);
    const std::lock_guard lock(bucket.lock);
    if (Entry* entry = bucket.find(space, id)) entry->state = kFree;
  }

  // Ends that no launch has claimed.
  std::uint64_t unclaimed() noexcept {
    std::uint64_t count = 0;
    for (std::size_t i = 0; i < kBuckets; ++i) {
      const std::lock_guard lock(buckets_[i].lock);
      for (const Entry& entry : buckets_[i].entries) count += entry.state == kEnded ? 1 : 0;
    }
    return count;
  }

 private:
  static constexpr std::size_t kBuckets = 1024;
  static constexpr std::size_t kEach = 16;
  enum State : std::uint8_t { kFree, kLaunched, kEnded };
  struct Entry {
    std::uint64_t space = 0;
    std::uint64_t id = 0;
    State state = kFree;
    Ran ran;
    Request request;
  };
  struct Bucket {
    SpinLock lock;
    std::uint32_t next = 0;
    std::array<Entry, kEach> entries;

    Entry* find(std::uint64_t space, std::uint64_t id) noexcept {
      for (Entry& entry : entries) {
        if (entry.state != kFree && entry.id == id && entry.space == space) return &entry;
      }
      return nullptr;
    }
    Entry& room(std::uint64_t space, std::uint64_t id, bool* forgot) noexcept {
      Entry* found = find(space, id);
      *forgot = found != nullptr;
      for (std::size_t i = 0; found == nullptr && i < kEach; ++i) {
        if (entries[i].state == kFree) found = &entries[i];
      }
      if (found == nullptr) {
        *forgot = true;
        found = &entries[next++ % kEach];
      }
      found->space = space;
      found->id = id;
      return *found;
    }
  };

  Bucket& bucket(std::uint64_t space, std::uint64_t id) noexcept { return buckets_[hash_mix(id, space) % kBuckets]; }

  std::unique_ptr<Bucket[]> buckets_;
};

}  // namespace leadline::accelerator
