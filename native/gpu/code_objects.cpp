#include "gpu/code_objects.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>

#include "base/hash.h"
#include "gpu/measure.h"

namespace leadline::gpu {

std::uint64_t CodeObjects::identify(const void* image, std::size_t bytes) noexcept {
  constexpr std::size_t kReadWhole = 1u << 20;
  constexpr std::size_t kPiece = 1024;
  constexpr std::size_t kPieces = kReadWhole / kPiece;
  if (image == nullptr) return 0;
  const char* const from = static_cast<const char*>(image);
  if (bytes <= kReadWhole) return hash_bytes(from, bytes);
  std::uint64_t id = bytes;
  for (std::size_t i = 0; i < kPieces; ++i) {
    const std::uint64_t of_piece = hash_bytes(from + (bytes - kPiece) / (kPieces - 1) * i, kPiece);
    id = hash_mix(id, of_piece);
  }
  return id;
}

void CodeObjects::keep(const void* image, std::size_t bytes) noexcept {
  if (image == nullptr || bytes == 0 || folder_.empty()) return;
  const std::uint64_t id = identify(image, bytes);
  try {
    {
      const std::lock_guard lock(mutex_);
      if (!known_.insert(id).second) return;
    }
    if (kept_bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes > most_bytes_) {
      kept_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
      left_out_.fetch_add(1, std::memory_order_relaxed);
      return count_loss(LossKind::kCodeUnavailable, 1,
                        "More code was loaded on the device than is kept, so samples of some have no source lines; "
                        "give more room with LEADLINE_CODE_BYTES.");
    }
    const char* const from = static_cast<const char*>(image);
    Copy copy{id, {from, from + bytes}};
    const std::lock_guard lock(mutex_);
    copies_.push_back(std::move(copy));
  } catch (...) {
    left_out_.fetch_add(1, std::memory_order_relaxed);
  }
}

void CodeObjects::write_kept() noexcept {
  std::vector<Copy> copies;
  {
    const std::lock_guard lock(mutex_);
    copies.swap(copies_);
  }
  for (const Copy& copy : copies) {
    bool written = false;
    try {
      written = write(copy.id, copy.image.data(), copy.image.size());
    } catch (...) {  // no memory for its path
    }
    if (written) continue;
    kept_bytes_.fetch_sub(copy.image.size(), std::memory_order_relaxed);
    left_out_.fetch_add(1, std::memory_order_relaxed);
    count_loss(LossKind::kCodeUnavailable, 1,
               "Code of the device could not be written next to the segments, so its samples have no source lines; see "
               "whether the disk is full.");
  }
}

// Whole or not at all: another process of the session may write the same.
bool CodeObjects::write(std::uint64_t id, const void* image, std::size_t bytes) const {
  char name[32];
  std::snprintf(name, sizeof name, "/%016" PRIx64 ".code", id);
  const std::string path = folder_ + name;
  struct stat already {};
  if (::stat(path.c_str(), &already) == 0) return true;
  ::mkdir(folder_.c_str(), 0777);  // it may be there
  const std::string temporary = path + "." + std::to_string(::getpid());
  const int file = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) return false;
  std::size_t written = 0;
  while (written < bytes) {
    const ssize_t now = ::write(file, static_cast<const char*>(image) + written, bytes - written);
    if (now <= 0) break;
    written += static_cast<std::size_t>(now);
  }
  const bool whole = ::close(file) == 0 && written == bytes;
  if (whole && ::rename(temporary.c_str(), path.c_str()) == 0) return true;
  ::unlink(temporary.c_str());
  return false;
}

}  // namespace leadline::gpu
