// Reads of this process's own memory that cannot crash: an address that is not mapped is an answer, not a fault.
//
// For signal handlers and for walks of structures that their owner may be changing. Each page is read once, through the
// kernel, and then served from a copy until forget(). No lock, no allocation; used by one thread at a time.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace leadline {

class SafePages {
 public:
  static constexpr size_t kPage = 4096;
  static constexpr size_t kPages = 16;

  // Whether the kernel lets this process read itself at all; sandboxes may forbid the call.
  static bool allowed() noexcept;

  // From now on everything is read anew.
  void forget() noexcept {
    for (uintptr_t& page : number_) page = kNone;
  }
  bool read(uintptr_t address, void* out, size_t bytes) noexcept {
    auto* to = static_cast<unsigned char*>(out);
    while (bytes != 0) {
      const size_t offset = address % kPage;
      const size_t part = bytes < kPage - offset ? bytes : kPage - offset;
      const unsigned char* const page = held(address / kPage);
      if (page == nullptr) return false;
      std::memcpy(to, page + offset, part);
      to += part;
      address += part;
      bytes -= part;
    }
    return true;
  }
  template <typename T>
  bool read(uintptr_t address, T* out) noexcept {
    return read(address, out, sizeof(T));
  }

 private:
  static constexpr uintptr_t kNone = ~uintptr_t{0};

  const unsigned char* held(uintptr_t page) noexcept {
    const size_t slot = page % kPages;
    return number_[slot] == page || load(page, slot) ? bytes_[slot].data() : nullptr;
  }
  bool load(uintptr_t page, size_t slot) noexcept;

  std::array<uintptr_t, kPages> number_ = [] {
    std::array<uintptr_t, kPages> none;
    none.fill(kNone);
    return none;
  }();
  std::array<std::array<unsigned char, kPage>, kPages> bytes_;
};

// Without a cache, for a few words: false where not all of it can be read.
bool read_safely(uintptr_t address, void* out, size_t bytes) noexcept;

}  // namespace leadline
