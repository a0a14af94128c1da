// The machine code that a program's devices were given, kept as files while it is there: once per content, up to a
// size.
//
// Code is gone when its module is, and some of it was made in memory, so what is to be looked at after the run must be
// kept when it is loaded: copied there, inside the program's load, and written by a thread of ours.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_set>
#include <vector>

namespace leadline::gpu {

class CodeObjects {
 public:
  // `folder`: where to write `HASH.code`, made when it is needed; empty: keep nothing.
  CodeObjects(std::string folder, std::uint64_t most_bytes) : folder_(std::move(folder)), most_bytes_(most_bytes) {}

  // Any thread; copies what is new.
  void keep(const void* image, std::size_t bytes) noexcept;
  // Our thread; writes what was copied.
  void write_kept() noexcept;
  // Tells this code from any other. Of large code, as libraries bring, not all is read: the program waits for it.
  static std::uint64_t identify(const void* image, std::size_t bytes) noexcept;

  std::uint64_t kept_bytes() const noexcept { return kept_bytes_.load(std::memory_order_relaxed); }
  // Distinct ones that are not in the folder, for want of room or of a disk.
  std::uint64_t left_out() const noexcept { return left_out_.load(std::memory_order_relaxed); }

 private:
  bool write(std::uint64_t id, const void* image, std::size_t bytes) const;

  const std::string folder_;
  const std::uint64_t most_bytes_;
  std::mutex mutex_;  // of the next two; never held while something is written
  struct Copy {
    std::uint64_t id = 0;
    std::vector<char> image;
  };
  std::vector<Copy> copies_;
  std::unordered_set<std::uint64_t> known_;
  std::atomic<std::uint64_t> kept_bytes_{0};
  std::atomic<std::uint64_t> left_out_{0};
};

}  // namespace leadline::gpu
